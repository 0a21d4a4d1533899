/**
 * Reads a chat client's answers to tool calls and approval requests. They are in the last assistant message (`useChat` sends
 * it again with the outputs filled in) or in `tool` messages at the end. A user message after them starts a new turn, so
 * there are no answers then. The server matches them with open requests.
 */
import type { Answer } from '../../part/request-part.ts'
import { approvalsOf, toResult } from '../model-message.ts'
import { toAnswer, toToolPart } from './ui-tool-part.ts'
import { toArray, toFields, type Fields } from './ui-parts.ts'

export interface ToolAnswer {
  toolCallId: string
  answer: Answer
}

/** Throws `bad-input` (400) naming the index and the field. */
export function toolAnswers(messages: unknown): ToolAnswer[] {
  const list = toArray(messages, 'messages').map((message, i) => toFields(message, `messages[${i}]`))
  let first = list.length
  while (first > 0 && list[first - 1]!['role'] === 'tool') first--
  const assistant = list[first - 1]
  // Keyed by call id: providers reuse ids in later steps, and only the last call can be open.
  const answers = new Map<string, Answer | undefined>()
  if (assistant?.['role'] === 'assistant' && Array.isArray(assistant['parts'])) {
    for (const [i, value] of assistant['parts'].entries()) {
      const place = `messages[${first - 1}].parts[${i}]`
      const tool = toToolPart(toFields(value, place), place)
      if (tool) answers.set(tool.toolCallId, toAnswer(tool))
    }
  }
  const approvals = assistant ? approvalsOf(assistant) : new Map<string, string>()
  for (let m = first; m < list.length; m++) {
    const content = toArray(list[m]!['content'], `messages[${m}].content`)
    for (const [i, value] of content.entries()) {
      const place = `messages[${m}].content[${i}]`
      const [toolCallId, answer] = toPartAnswer(toFields(value, place), place, approvals) ?? []
      if (toolCallId !== undefined) answers.set(toolCallId, answer)
    }
  }
  return [...answers].flatMap(([toolCallId, answer]) => (answer ? [{ toolCallId, answer }] : []))
}

function toPartAnswer(part: Fields, place: string, approvals: Map<string, string>): [string, Answer] | undefined {
  if (part['type'] === 'tool-approval-response') {
    const toolCallId = approvals.get(String(part['approvalId']))
    if (toolCallId === undefined) return undefined
    const answer: Answer = { kind: 'approval', approved: part['approved'] === true }
    if (typeof part['reason'] === 'string') answer.reason = part['reason']
    return [toolCallId, answer]
  }
  if (part['type'] !== 'tool-result') return undefined
  const { toolCallId, output } = toResult(part, place)
  switch (output.type) {
    case 'text':
    case 'json':
      return [toolCallId, { kind: 'tool', output: output.value }]
    case 'error-text':
    case 'error-json':
      return [toolCallId, { kind: 'tool', output: output.value, isError: true }]
    case 'execution-denied': {
      const answer: Answer = { kind: 'approval', approved: false }
      if (output.reason !== undefined) answer.reason = output.reason
      return [toolCallId, answer]
    }
  }
}
