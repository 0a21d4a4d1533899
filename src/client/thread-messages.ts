/** The stored conversation of a server, as the messages that a page shows. */
import { omitUndefined } from '../part/omit-undefined.ts'
import type { AssistantContent, FileContent, Message, ToolResultContent } from '../part/message.ts'
import type { AgentMessage, MessagePart, ToolPart } from './agent-message.ts'

/** The input of a run: from the last message of the user on. Earlier ones are of earlier runs. */
export function questionMessages(messages: readonly Message[], runId: string): AgentMessage[] {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const first = messages.findLastIndex(({ role }, i) => i < last && role !== 'user') + 1
  return messages.slice(Math.max(0, first)).flatMap((message, i): AgentMessage[] => {
    const { role, id = `${runId}:${i}`, content } = message
    if (role === 'tool' || role === 'assistant') return []
    return [{ id, role, runId, parts: toParts(content) }]
  })
}

/** A conversation, oldest first. `lastRunId`: the run of the unanswered messages. */
export function threadMessages(messages: readonly Message[], lastRunId: string): AgentMessage[] {
  const list: (AgentMessage & { parts: MessagePart[] })[] = []
  /** Questions whose run the next answer names. */
  let open: (AgentMessage & { parts: MessagePart[] })[] = []
  const settle = (runId: string) => {
    open.forEach((message, i) => Object.assign(message, { id: message.id || `${runId}:${i}`, runId }))
    open = []
  }
  for (const [at, message] of messages.entries()) {
    const last = list.at(-1)
    switch (message.role) {
      case 'system':
      case 'user': {
        const question = { id: message.id ?? '', role: message.role, parts: toParts(message.content) }
        list.push(question)
        open.push(question)
        break
      }
      case 'assistant': {
        const { id, content } = message
        const goesOn = last?.role === 'assistant' && (id === undefined || id === last.id)
        if (!goesOn) {
          if (id !== undefined) settle(id)
          list.push({ id: id ?? `message-${at}`, role: 'assistant', parts: [], ...(id !== undefined && { runId: id }) })
        }
        const { parts } = list.at(-1)!
        for (const part of toParts(content)) parts.push(part)
        break
      }
      case 'tool':
        for (const result of message.content) if (last !== undefined) settleCall(last.parts, result)
    }
  }
  settle(lastRunId)
  return list.map((message, i) => (message.id === '' ? { ...message, id: `message-${i}` } : message))
}

function toParts(content: string | readonly AssistantContent[]): MessagePart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content, state: 'done' }]
  const parts: MessagePart[] = []
  for (const part of content) {
    switch (part.type) {
      case 'text':
      case 'reasoning':
        parts.push({ type: part.type, text: part.text, state: 'done' })
        break
      case 'file':
        parts.push({
          type: 'file',
          mediaType: part.mediaType,
          url: urlOf(part),
          ...omitUndefined({ filename: part.filename }),
        })
        break
      case 'tool-call': {
        const { toolCallId, toolName, input } = part
        parts.push({
          type: 'tool',
          toolCallId,
          toolName,
          state: 'input-available',
          inputText: JSON.stringify(input),
          input,
        })
        break
      }
      case 'tool-result':
        settleCall(parts, part)
        break
      default:
    }
  }
  return parts
}

function settleCall(parts: MessagePart[], { toolCallId, output }: ToolResultContent): void {
  const at = parts.findLastIndex((part) => part.type === 'tool' && part.toolCallId === toolCallId)
  if (at < 0) return
  const call = parts[at] as ToolPart
  switch (output.type) {
    case 'text':
    case 'json':
      parts[at] = { ...call, state: 'output-available', output: output.value }
      break
    case 'execution-denied':
      parts[at] = { ...call, state: 'output-denied', ...omitUndefined({ errorText: output.reason }) }
      break
    default: {
      const { value } = output
      parts[at] = {
        ...call,
        state: 'output-error',
        errorText: typeof value === 'string' ? value : JSON.stringify(value),
      }
    }
  }
}

function urlOf({ data, mediaType }: FileContent): string {
  return /^(?:data:|https?:\/\/)/iu.test(data) ? data : `data:${mediaType};base64,${data}`
}
