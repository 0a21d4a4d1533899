/** The messages that an AG-UI client has after some events. */
import type { ToolCall } from '@ag-ui/core'
import { omitUndefined } from '../../part/omit-undefined.ts'
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

  function assistant({ subagentRunId }: AgUiEvent & { subagentRunId?: string }, id: string): Assistant {
    let message = assistants.get(id)
    if (message === undefined) {
      message = { id, role: 'assistant', ...omitUndefined({ subagentRunId }) }
      assistants.set(id, message)
      list.push(message)
    }
    return message
  }

  function apply(event: AgUiEvent): void {
    switch (event.type) {
      case 'TEXT_MESSAGE_START':
        assistant(event, event.messageId).content ??= ''
        break
      case 'TEXT_MESSAGE_CONTENT': {
        const message = assistant(event, event.messageId)
        message.content = (message.content ?? '') + event.delta
        break
      }
      case 'REASONING_MESSAGE_START': {
        const { messageId: id, subagentRunId } = event
        const message: Reasoning = { id, role: 'reasoning', content: '', ...omitUndefined({ subagentRunId }) }
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
        const message = assistant(event, parentMessageId)
        message.toolCalls = [...(message.toolCalls ?? []), call]
        break
      }
      case 'TOOL_CALL_ARGS': {
        const call = calls.get(event.toolCallId)
        if (call !== undefined) call.function.arguments += event.delta
        break
      }
      case 'TOOL_CALL_RESULT': {
        const { messageId: id, toolCallId, content, metadata, subagentRunId } = event
        const isError = metadata?.['isError'] === true && typeof content === 'string'
        const about = { ...(isError && { error: content }), ...omitUndefined({ subagentRunId }) }
        list.push({ id, role: 'tool', toolCallId, content, ...about })
        break
      }
      default:
    }
  }

  return { list, apply }
}
