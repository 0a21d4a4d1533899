import type { Message } from '../part/message.ts'

/** A message of a request that brings the whole conversation, and what the client's ids say about it. */
export interface SentMessage {
  message: Message
  /** The run that the ids in it name: it may be another's, or none. */
  run?: string
  /** It stands for what that run recorded, and has nothing else. */
  isReference?: true
}
