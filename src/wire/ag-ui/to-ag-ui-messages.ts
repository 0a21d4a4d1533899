/** Converts a conversation to AG-UI messages. */
import { compact } from '../../part/compact.ts'
import type { AssistantContent, FileContent, Message, TextContent, ToolOutput } from '../../part/message.ts'
import type { AgUiMessage } from './ag-ui-event.ts'

type Assistant = Extract<AgUiMessage, { role: 'assistant' }>
type Content = Extract<AgUiMessage, { role: 'user' }>['content']
type ContentPart = Exclude<Content, string>[number]

/** A message without an id gets `message-<index>`. A message that becomes several gets `:<n>` behind its id. */
export function toAgUiMessages(messages: readonly Message[]): AgUiMessage[] {
  const counts = new Map<string, number>()
  const unique = (id: string) => {
    const count = counts.get(id) ?? 0
    counts.set(id, count + 1)
    return count === 0 ? id : `${id}:${count}`
  }
  return messages.flatMap((message, i) => {
    const base = message.id ?? `message-${i}`
    return toMessages(message).map((made): AgUiMessage => ({
      ...made,
      id: unique(base),
    }))
  })
}

function toMessages(message: Message): AgUiMessage[] {
  const id = ''
  switch (message.role) {
    case 'system':
      return [{ id, role: 'system', content: message.content }]
    case 'user':
      return [{ id, role: 'user', content: toContent(message.content) }]
    case 'tool':
      return message.content.map(({ toolCallId, output }) => toToolMessage(toolCallId, output))
    case 'assistant':
      if (typeof message.content === 'string') return [{ id, role: 'assistant', content: message.content }]
      return fromAssistant(message.content)
  }
}

function fromAssistant(parts: readonly AssistantContent[]): AgUiMessage[] {
  const before: AgUiMessage[] = []
  const after: AgUiMessage[] = []
  const own: Assistant = { id: '', role: 'assistant' }
  for (const part of parts) {
    switch (part.type) {
      case 'text':
        own.content = (own.content ?? '') + part.text
        break
      case 'reasoning': {
        const encryptedValue = part.providerOptions && JSON.stringify(part.providerOptions)
        before.push(
          compact({
            id: '',
            role: 'reasoning' as const,
            content: part.text,
            encryptedValue,
          }),
        )
        break
      }
      case 'tool-call': {
        const { toolCallId, toolName: name, input, providerOptions } = part
        const args = typeof input === 'string' ? input : JSON.stringify(input ?? {})
        const encryptedValue = providerOptions && JSON.stringify(providerOptions)
        const call = {
          id: toolCallId,
          type: 'function' as const,
          function: { name, arguments: args },
          encryptedValue,
        }
        own.toolCalls = [...(own.toolCalls ?? []), compact(call)]
        break
      }
      case 'tool-result':
        after.push(toToolMessage(part.toolCallId, part.output))
        break
      case 'file':
      case 'custom':
        break
    }
  }
  const isEmpty = own.content === undefined && own.toolCalls === undefined
  return [...before, ...(isEmpty ? [] : [own]), ...after]
}

function toToolMessage(toolCallId: string, output: ToolOutput): AgUiMessage {
  const value = output.type === 'execution-denied' ? (output.reason ?? 'The tool call was denied.') : output.value
  const content = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  const isError = output.type !== 'text' && output.type !== 'json'
  return {
    id: '',
    role: 'tool',
    toolCallId,
    content,
    ...(isError && { error: content }),
  }
}

function toContent(content: string | readonly (TextContent | FileContent)[]): Content {
  if (typeof content === 'string') return content
  return content.map((part): ContentPart => {
    if (part.type === 'text') return { type: 'text', text: part.text }
    const { mediaType: mimeType, data } = part
    const source = /^(data:|https?:)/iu.test(data)
      ? { type: 'url' as const, value: data, mimeType }
      : { type: 'data' as const, value: data, mimeType }
    return { type: kindOf(mimeType), source }
  })
}

function kindOf(mediaType: string): 'image' | 'audio' | 'video' | 'document' {
  const kind = mediaType.slice(0, mediaType.indexOf('/'))
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'document'
}
