/** An error as one text, for error frames without further fields, sent after status and headers. */
import type { ErrorValue } from '../part/error.ts'

/** The message, with the seconds to wait if the error has `retryAfter`. */
export function errorText({ message, retryAfter }: Pick<ErrorValue, 'message' | 'retryAfter'>): string {
  if (retryAfter === undefined) return message
  const seconds = Math.ceil(retryAfter)
  const sentence = /[.!?]$/u.test(message) ? message : `${message}.`
  return `${sentence} Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`
}

/** For wires that cannot take back what they have sent of an attempt that a crash superseded. */
export const begunAgain = 'The server was interrupted and had to begin this answer again. Load the conversation again.'
