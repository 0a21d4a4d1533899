/** The messages that an AG-UI client has after some events. */
import type { ToolCall } from '@ag-ui/core'
import type { AgUiEvent, AgUiMessage } from './ag-ui-event.ts'

type Assistant = Extract<AgUiMessage, { role: 'assistant' }>
type Reasoning = Extract<AgUiMessage, { role: 'reasoning' }>

export interface EventMessages {
  readonly list: AgUiMessage[]
  apply(event: AgUiEvent): void
}

export function createEventMessages(): EventMessages {
  const list: AgUiMessage[] = []
  const assistants = new Map<string, Assistant>()
  const reasonings = new Map<string, Reasoning>()
  const calls = new Map<string, ToolCall>()

  function assistant(id: string): Assistant {
    let message = assistants.get(id)
    if (message === undefined) {
      message = { id, role: 'assistant' }
      assistants.set(id, message)
      list.push(message)
    }
    return message
  }

  function apply(event: AgUiEvent): void {
    switch (event.type) {
      case 'TEXT_MESSAGE_START':
        assistant(event.messageId).content ??= ''
        break
      case 'TEXT_MESSAGE_CONTENT': {
        const message = assistant(event.messageId)
        message.content = (message.content ?? '') + event.delta
        break
      }
      case 'REASONING_MESSAGE_START': {
        const message: Reasoning = { id: event.messageId, role: 'reasoning', content: '' }
        reasonings.set(event.messageId, message)
        list.push(message)
        break
      }
      case 'REASONING_MESSAGE_CONTENT': {
        const message = reasonings.get(event.messageId)
        if (message !== undefined) message.content += event.delta
        break
      }
      case 'REASONING_ENCRYPTED_VALUE': {
        const { subtype, entityId, encryptedValue } = event
        const entity = subtype === 'tool-call' ? calls.get(entityId) : reasonings.get(entityId)
        if (entity !== undefined) entity.encryptedValue = encryptedValue
        break
      }
      case 'TOOL_CALL_START': {
        const { toolCallId: id, toolCallName: name, parentMessageId = id } = event
        const call: ToolCall = { id, type: 'function', function: { name, arguments: '' } }
        calls.set(id, call)
        const message = assistant(parentMessageId)
        message.toolCalls = [...(message.toolCalls ?? []), call]
        break
      }
      case 'TOOL_CALL_ARGS': {
        const call = calls.get(event.toolCallId)
        if (call !== undefined) call.function.arguments += event.delta
        break
      }
      case 'TOOL_CALL_RESULT': {
        const { messageId: id, toolCallId, content, metadata } = event
        const isError = metadata?.['isError'] === true && typeof content === 'string'
        list.push({ id, role: 'tool', toolCallId, content, ...(isError && { error: content }) })
        break
      }
      default:
    }
  }

  return { list, apply }
}
