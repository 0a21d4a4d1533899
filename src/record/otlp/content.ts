/** The content of a model call, in the form of OpenTelemetry's conventions: only for those who ask for it. */
import type { Entry, EntryOf } from '../../part/entry.ts'
import type { Message } from '../../part/message.ts'
import type { Attributes } from './span.ts'

export interface Content {
  apply(entry: Entry): void
  read(): Attributes
}

/** Collectors refuse very long attributes. */
const longest = 60_000

export function createContent(): Content {
  let prompt: EntryOf<'prompt'> | undefined
  let finishReason: string | undefined
  const texts = { text: '', reasoning: '' }
  const calls: object[] = []
  return {
    apply(entry) {
      if (entry.type === 'prompt') prompt = entry
      else if (entry.type === 'text-delta') texts.text += entry.delta
      else if (entry.type === 'reasoning-delta') texts.reasoning += entry.delta
      else if (entry.type === 'tool-call') {
        calls.push({ type: 'tool_call', id: entry.toolCallId, name: entry.toolName, arguments: entry.input })
      } else if (entry.type === 'finish') finishReason = entry.finishReason.unified
    },
    read() {
      const parts = [
        ...(texts.reasoning === '' ? [] : [{ type: 'reasoning', content: texts.reasoning }]),
        ...(texts.text === '' ? [] : [{ type: 'text', content: texts.text }]),
        ...calls,
      ]
      const { system, messages = [] } = prompt ?? {}
      return {
        'gen_ai.system_instructions': system === undefined ? undefined : toText([{ type: 'text', content: system }]),
        'gen_ai.input.messages': toText(messages.map(toMessage)),
        'gen_ai.output.messages': toText([{ role: 'assistant', parts, finish_reason: finishReason }]),
      }
    },
  }
}

function toMessage({ role, content }: Message): object {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : (content as { type: string }[])
  return { role, parts: parts.map(toPart) }
}

function toPart(part: { type: string }): object {
  const { type, text, toolCallId: id, toolName: name, input, output } = part as Record<string, unknown> & typeof part
  if (type === 'text' || type === 'reasoning') return { type, content: text }
  if (type === 'tool-call') return { type: 'tool_call', id, name, arguments: input }
  if (type === 'tool-result') return { type: 'tool_call_response', id, result: output }
  return { type }
}

function toText(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length > longest ? `${text.slice(0, longest)}…` : text
}
