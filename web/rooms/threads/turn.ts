/** What was said in one run, in the order in which it was said. */
import { textOf } from '../../../src/fold/run-view.ts'
import type { Message } from '../../../src/part/message.ts'

export type TurnLine =
  | { kind: 'user' | 'text' | 'reasoning'; text: string }
  | { kind: 'file'; name: string }
  | { kind: 'tool'; id: string; name: string; input: unknown; output?: unknown; isError?: boolean }

/** `isWhole`: the input is the whole conversation, of which only what came last is new. */
export function saidIn(input: unknown, answer: readonly Message[], isWhole: boolean): TurnLine[] {
  const asked = Array.isArray(input) ? (input as Message[]) : []
  const last = asked.findLastIndex(({ role }) => role !== 'user')
  const fresh = isWhole ? asked.slice(last + 1) : asked
  const said = fresh.flatMap((message): TurnLine[] =>
    message.role === 'user' ? [{ kind: 'user', text: textOf(message) }, ...filesOf(message)] : [],
  )
  const tools = new Map<string, Extract<TurnLine, { kind: 'tool' }>>()
  for (const message of answer) {
    if (message.role === 'tool') {
      for (const { toolCallId, output } of message.content) {
        const tool = tools.get(toolCallId)
        if (tool !== undefined) Object.assign(tool, resultOf(output))
      }
      continue
    }
    // What was sent into the turn.
    if (message.role === 'user') {
      said.push({ kind: 'user', text: textOf(message) }, ...filesOf(message))
      continue
    }
    if (message.role !== 'assistant') continue
    if (typeof message.content === 'string') {
      said.push({ kind: 'text', text: message.content })
      continue
    }
    for (const part of message.content) {
      if (part.type === 'text' || part.type === 'reasoning') said.push({ kind: part.type, text: part.text })
      else if (part.type === 'file') said.push({ kind: 'file', name: part.filename ?? part.mediaType })
      else if (part.type === 'tool-call') {
        const tool = { kind: 'tool' as const, id: part.toolCallId, name: part.toolName, input: part.input }
        tools.set(tool.id, tool)
        said.push(tool)
      } else if (part.type === 'tool-result') Object.assign(tools.get(part.toolCallId) ?? {}, resultOf(part.output))
    }
  }
  return said.filter((each) => !('text' in each) || each.text !== '')
}

function filesOf({ content }: Message): TurnLine[] {
  if (typeof content === 'string') return []
  return content.flatMap((part): TurnLine[] =>
    part.type === 'file' ? [{ kind: 'file', name: part.filename ?? part.mediaType }] : [],
  )
}

function resultOf(output: { type: string; value?: unknown; reason?: string }) {
  return {
    output: output.type === 'execution-denied' ? (output.reason ?? 'denied') : output.value,
    isError: output.type.startsWith('error') || output.type === 'execution-denied',
  }
}
