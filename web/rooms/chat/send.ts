/** What is sent when a message is sent: the body of `POST /api/runs`. */
import { textOf } from '../../../src/fold/run-view.ts'
import type { FileContent, Message, TextContent, UserMessage } from '../../../src/part/message.ts'
import { answerText, type ChatTurn } from './turn.ts'

export interface Attachment {
  name: string
  mediaType: string
  /** A `data:` URL. */
  url: string
  bytes: number
}

export interface Outgoing {
  agentId: string
  threadId?: string
  /** The run whose conversation the new one continues instead of the thread's last; null: none. */
  previousRunId?: string | null
  /** YAML that the run executes instead of the agent's file; null: the file again, whatever the thread had. */
  pipeline?: string | null
  input: Record<string, unknown> & { messages?: Message[] }
}

/** What stands in the box again when messages come back: their words and their files. */
export function toDraft(messages: readonly Message[]): { text: string; files: Attachment[] } {
  const files = messages.flatMap(({ content }) =>
    typeof content === 'string'
      ? []
      : content.flatMap((part) => ('type' in part && part.type === 'file' ? [toAttachment(part)] : [])),
  )
  return { text: messages.map(textOf).filter(Boolean).join('\n\n'), files }
}

function toAttachment({ mediaType, data, filename = mediaType }: FileContent): Attachment {
  const url = /^(?:data|https?):/u.test(data) ? data : `data:${mediaType};base64,${data}`
  return { name: filename, mediaType, url, bytes: Math.floor((url.length - url.indexOf(',') - 1) * 0.75) }
}

/** Undefined without words and files. */
export function toMessage(text: string, files: readonly Attachment[]): UserMessage | undefined {
  const words = text.trim()
  if (files.length === 0) return words === '' ? undefined : { role: 'user', content: text }
  const parts: (TextContent | FileContent)[] = words === '' ? [] : [{ type: 'text', text }]
  for (const { name, mediaType, url } of files) parts.push({ type: 'file', mediaType, data: url, filename: name })
  return { role: 'user', content: parts }
}

export interface Saying {
  agentId: string
  threadId: string | undefined
  messages: readonly Message[]
  /** Other keys of the input. */
  values: Readonly<Record<string, unknown>>
  /** The turns before it, if the client keeps the history. */
  before: readonly ChatTurn[] | undefined
  previousRunId?: string | null
}

export function toOutgoing({ agentId, threadId, messages, values, before = [], previousRunId }: Saying): Outgoing {
  const all = [...before.flatMap(conversationOf), ...messages]
  return {
    agentId,
    ...(threadId !== undefined && { threadId }),
    ...(previousRunId !== undefined && { previousRunId }),
    input: { ...values, ...(all.length > 0 && { messages: all }) },
  }
}

/** The server puts its own record of the answer in the place of the message with the run's id. */
function conversationOf(turn: ChatTurn): Message[] {
  const text = answerText(turn)
  return [...turn.asked, ...(text === '' ? [] : [{ role: 'assistant' as const, id: turn.runId, content: text }])]
}

/** A random text. `crypto.randomUUID` is missing on pages that come over plain HTTP from another machine. */
export function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}
