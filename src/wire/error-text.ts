/** An error in one text, for protocols whose error frames have no place for more: a status and headers went out before. */
import type { ErrorValue } from '../part/error.ts'

/** With the time to wait, as whole seconds, when the error has one: what `Retry-After` would have said. */
export function errorText({ message, retryAfter }: Pick<ErrorValue, 'message' | 'retryAfter'>): string {
  if (retryAfter === undefined) return message
  const seconds = Math.ceil(retryAfter)
  const sentence = /[.!?]$/u.test(message) ? message : `${message}.`
  return `${sentence} Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`
}
