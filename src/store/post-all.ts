/** Several messages in one write. */
import type { NewMessage, Posted } from '../part/log.ts'
import { encodeMessage } from './encode.ts'

/** A message with its JSON. */
export interface EncodedMessage extends NewMessage {
  text: string
}

/** Encodes messages before the first is posted, so that one that cannot be encoded prevents all. */
export function encodeMessages(run: string, messages: readonly NewMessage[]): EncodedMessage[] {
  return messages.map(({ key, message }) => ({ key, message, text: encodeMessage(run, key, message) }))
}

/** Posts messages in order, up to the first whose key is taken. */
export function postInOrder(messages: readonly EncodedMessage[], post: (message: EncodedMessage) => Posted): Posted[] {
  const results: Posted[] = []
  for (const message of messages) {
    const posted = post(message)
    results.push(posted)
    if (!posted.first) break
  }
  return results
}
