/** Converts a conversation to AG-UI messages, for MESSAGES_SNAPSHOT. The reverse of `fromAgUiMessages`. */
import type { ContentPart, PartSource, ToolCall } from '@ag-ui/core'
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { AssistantContent, FileContent, Message, ToolCallContent, ToolResultContent } from '../../part/message.ts'
import type { AgUiMessage } from './ag-ui-event.ts'
import { createAgUiCallNames, type AgUiCallNames, resultId, toEncryptedValue } from './ag-ui-ids.ts'

/**
 * Messages of an assistant get the id `<run>:<n>`, where n counts the run's messages, and results get separate ids, as in the stream; messages
 * without an id get `message-<index>`. Files that a model made are left out: AG-UI has no message for them.
 */
export function toAgUiMessages(messages: readonly Message[]): AgUiMessage[] {
  const list: AgUiMessage[] = []
  const names = createAgUiCallNames()
  /** The id and count of the assistant's message that is being continued. */
  let run: { id: string; count: number } | undefined
  for (const [i, message] of messages.entries()) {
    switch (message.role) {
      case 'system':
        run = undefined
        list.push({ id: message.id ?? `message-${i}`, role: 'system', content: message.content })
        break
      case 'user':
        run = undefined
        list.push({ id: message.id ?? `message-${i}`, role: 'user', content: toContent(message.content) })
        break
      case 'assistant':
      case 'tool': {
        const { id = run?.id ?? `message-${i}`, content } = message
        if (run?.id !== id) run = { id, count: 0 }
        const at = run
        const next = () => `${at.id}:${++at.count}`
        const parts: readonly AssistantContent[] =
          typeof content === 'string' ? [{ type: 'text', text: content }] : content
        list.push(...toReply(parts, { next, run: id, names }))
      }
    }
  }
  return list
}

interface Naming {
  /** The id of the next message of the run. */
  next(): string
  run: string
  names: AgUiCallNames
}

/** The first text and all calls are one message, as in the stream. */
function toReply(content: readonly AssistantContent[], { next, run, names }: Naming): AgUiMessage[] {
  const list: AgUiMessage[] = []
  const results: ToolResultContent[] = []
  const calls: ToolCall[] = []
  let first: Extract<AgUiMessage, { role: 'assistant' }> | undefined
  for (const part of content) {
    switch (part.type) {
      case 'reasoning':
        list.push({ id: next(), role: 'reasoning', content: part.text, ...encrypted(part) })
        break
      case 'text': {
        if (first !== undefined && first.content === undefined) {
          first.content = part.text
          break
        }
        const message: typeof first = { id: next(), role: 'assistant', content: part.text }
        first ??= message
        list.push(message)
        break
      }
      case 'tool-call':
        if (first === undefined) list.push((first = { id: next(), role: 'assistant' }))
        calls.push(toCall(part, names.next(part.toolCallId)))
        break
      case 'tool-result':
        results.push(part)
        break
      case 'file':
      case 'custom':
        break
    }
  }
  if (first !== undefined && calls.length > 0) first.toolCalls = calls
  const named = results.map((result) => ({ result, name: names.last(result.toolCallId) }))
  return [...list, ...named.map(({ result, name }) => toResult(result, name, resultId(run, name)))]
}

function toCall({ toolName, input, ...rest }: ToolCallContent, id: string): ToolCall {
  // Arguments that are not JSON were kept as the model's text.
  const written = typeof input === 'string' ? input : JSON.stringify(input ?? {})
  return { id, type: 'function', function: { name: toolName, arguments: written }, ...encrypted(rest) }
}

function toResult({ output }: ToolResultContent, toolCallId: string, id: string): AgUiMessage {
  const value = output.type === 'execution-denied' ? (output.reason ?? 'Denied.') : output.value
  const content = typeof value === 'string' ? value : JSON.stringify(value ?? null)
  const isError = output.type !== 'text' && output.type !== 'json'
  return omitUndefined({ id, role: 'tool', toolCallId, content, error: isError ? content : undefined })
}

function encrypted({ providerOptions }: Pick<ToolCallContent, 'providerOptions'>): { encryptedValue?: string } {
  return providerOptions === undefined ? {} : { encryptedValue: toEncryptedValue(providerOptions) }
}

function toContent(content: Extract<Message, { role: 'user' }>['content']): string | ContentPart[] {
  if (typeof content === 'string') return content
  return content.map((part) => (part.type === 'text' ? { type: 'text', text: part.text } : toMedia(part)))
}

function toMedia({ mediaType, data, filename }: FileContent): ContentPart {
  const kind = mediaType.split('/')[0]
  const type = kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'document'
  const source: PartSource = /^(?:data:|https?:\/\/)/iu.test(data)
    ? { type: 'url', value: data, mimeType: mediaType }
    : { type: 'data', value: data, mimeType: mediaType }
  return omitUndefined({ type, source, metadata: filename === undefined ? undefined : { filename } })
}
