/**
 * Messages in the inbox of a run: sent while it was active, and not in its log yet. `message:<id>` has the message, and the first `settle:<id>` says
 * who may take it: the run's owner, who delivers it, or its sender, who takes it back. So it is never both.
 */
import type { UserMessage } from './message.ts'
import type { SentMessage } from './part.ts'

/** `steer`: told to the model between two calls of its tool loop. `queue`: gets a run of its own after this one. */
export type MessageMode = 'steer' | 'queue'

export const messageModes: readonly MessageMode[] = ['steer', 'queue']

/** As it is posted. */
export type PostedMessage = Omit<SentMessage, 'type' | 'id' | 'outcome' | 'runId'> & { mode: MessageMode }

/** A message that waits. */
export interface WaitingMessage {
  id: string
  mode: MessageMode
  content: UserMessage['content']
  protocol: string
  by?: SentMessage['by']
  /** Epoch ms. */
  sentAt: number
}

/** Who has taken a message: the run that tells it to its model, its sender, or the thread's next run. */
export interface MessageClaim {
  to: 'run' | 'sender' | 'next'
}

/** At most so many messages wait for one run. */
export const mostWaiting = 20

/** Maximum UTF-8 bytes of a message's content, as JSON. */
export const mostMessageBytes = 32_768

export function messageKey(id: string): string {
  return `message:${id}`
}

export function claimKey(id: string): string {
  return `settle:${id}`
}

export function messageIdIn(key: string): string | undefined {
  return key.startsWith('message:') ? key.slice('message:'.length) : undefined
}

export function claimedIdIn(key: string): string | undefined {
  return key.startsWith('settle:') ? key.slice('settle:'.length) : undefined
}

/** The entry of a posted message. */
export function toSentMessage(id: string, posted: PostedMessage): SentMessage {
  const { mode: _, ...message } = posted
  return { type: 'message', id, ...message }
}
