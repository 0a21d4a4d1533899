import type { Message } from '../part/message.ts'

/** A message of a request that brings the whole conversation, and what the client's ids say about it. */
export interface SentMessage {
  message: Message
  /** The run that the ids in it name: it may be another's, or none. */
  run?: string
  /** It stands for what that run recorded, and has nothing else. */
  isReference?: true
}

/** The messages of a request, and what was found in them. */
export interface SentInput {
  messages: SentMessage[]
  /** Results of calls that are not in the input, with their places: those of the run before. */
  orphans: { toolCallId: string; place: string }[]
  /** What was left out, by its place. */
  ignored: string[]
}
