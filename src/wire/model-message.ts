/** Reads `{role, content}` from a client: plain text, or the parts of an AI SDK `ModelMessage`. */
import type { AssistantContent, Message, ToolOutput, ToolResultContent } from '../part/message.ts'
import { bad, toArray, toContent, toFields, toOptions, toString, type Fields } from './ui/ui-parts.ts'

export function fromModelMessage(role: Message['role'], message: Fields, place: string): Message | undefined {
  const { content } = message
  const base = {
    ...(typeof message['id'] === 'string' ? { id: message['id'] } : {}),
    ...toOptions(message['providerOptions']),
  }
  if (typeof content === 'string' && role !== 'tool') return { role, content, ...base }
  if (!Array.isArray(content)) {
    throw bad(
      `${place}.content`,
      role === 'tool' ? 'must be an array of tool results.' : 'must be a string or an array.',
    )
  }
  const parts = content.map((part, i) => toFields(part, `${place}.content[${i}]`))
  const placeOf = (i: number) => `${place}.content[${i}]`
  switch (role) {
    case 'system':
      return { role, content: parts.map((part, i) => toString(part['text'], `${placeOf(i)}.text`)).join(''), ...base }
    case 'user':
      return { role, content: parts.map((part, i) => toUserContent(part, placeOf(i))), ...base }
    case 'assistant': {
      const converted = parts.flatMap((part, i) => toAssistantContent(part, placeOf(i)) ?? [])
      return converted.length > 0 ? { role, content: converted, ...base } : undefined
    }
    case 'tool': {
      const results = parts.flatMap((part, i) => (part['type'] === 'tool-result' ? [toResult(part, placeOf(i))] : []))
      return results.length > 0 ? { role, content: results, ...base } : undefined
    }
  }
}

export function toUserContent(part: Fields, place: string) {
  const content = toContent(part, place)
  if (content && content.type !== 'reasoning') return content
  throw bad(`${place}.type`, `is ${JSON.stringify(part['type'])}; a user message can contain text and file parts.`)
}

function toAssistantContent(part: Fields, place: string): AssistantContent | undefined {
  switch (part['type']) {
    case 'tool-call': {
      const call: AssistantContent = {
        type: 'tool-call',
        toolCallId: toString(part['toolCallId'], `${place}.toolCallId`),
        toolName: toString(part['toolName'], `${place}.toolName`),
        input: part['input'] ?? {},
        ...toOptions(part['providerOptions']),
      }
      if (part['providerExecuted'] === true) call.providerExecuted = true
      return call
    }
    case 'tool-result':
      return toResult(part, place)
    case 'custom':
      return toCustom(part, place)
    case 'tool-approval-request':
    case 'reasoning-file':
      return undefined
    default: {
      const content = toContent(part, place)
      if (content) return content
      throw bad(`${place}.type`, `is ${JSON.stringify(part['type'])}, which is not a part of an assistant message.`)
    }
  }
}

/** Provider-specific content, as a UI part or a model message part. */
export function toCustom(part: Fields, place: string): AssistantContent {
  const kind = toString(part['kind'], `${place}.kind`) as `${string}.${string}`
  return { type: 'custom', kind, ...toOptions(part['providerMetadata'] ?? part['providerOptions']) }
}

const outputTypes: ReadonlySet<unknown> = new Set(['text', 'json', 'error-text', 'error-json', 'execution-denied'])

export function toResult(part: Fields, place: string): ToolResultContent {
  const output = toFields(part['output'], `${place}.output`)
  const { type } = output
  if (!outputTypes.has(type)) throw bad(`${place}.output.type`, `must be one of ${[...outputTypes].join(', ')}.`)
  if (type !== 'execution-denied' && !('value' in output)) throw bad(`${place}.output.value`, 'is missing.')
  return {
    type: 'tool-result',
    toolCallId: toString(part['toolCallId'], `${place}.toolCallId`),
    toolName: typeof part['toolName'] === 'string' ? part['toolName'] : '',
    output: output as ToolOutput,
    ...toOptions(part['providerOptions']),
  }
}

/** Approval id → call id. Approvals in a `tool` message name only the request; the assistant message names its call. */
export function approvalsOf(message: Fields): Map<string, string> {
  const approvals = new Map<string, string>()
  if (!Array.isArray(message['content'])) return approvals
  for (const part of toArray(message['content'], 'content') as Fields[]) {
    if (part?.['type'] !== 'tool-approval-request') continue
    approvals.set(String(part['approvalId']), String(part['toolCallId']))
  }
  return approvals
}
