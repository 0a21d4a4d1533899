/** Transient errors: Redis is unavailable, starts, or moves. The sender retries. */
import { messageOf } from '../../part/error.ts'

const passing = /^(?:LOADING|CLUSTERDOWN|TRYAGAIN|MASTERDOWN|READONLY|BUSY|NOREPLICAS|MOVED|ASK|UNBLOCKED)\b/u

/** Whether an error reply of Redis is transient. */
export const isPassingReply = (message: string): boolean => passing.test(message)

/** A transient error reply for a single operation of a script. */
export class PassingError extends Error {}

const isReply = (error: Error) => /^(?:ErrorReply|SimpleError|BlobError|MultiErrorReply)$/u.test(error.constructor.name)

/** Whether Redis has replied with a permanent error. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && isReply(error) && !isPassingReply(messageOf(error))
}

/** Whether to retry. An error reply of Redis is permanent, except for transient ones. */
export function isTransientError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof PassingError) return true
  const { name } = error.constructor
  if (isReply(error)) return isPassingReply(messageOf(error))
  if (/^(?:Client|Socket|Connection|Disconnects|Reconnect|RootNodes|Timeout|MaxCommand)\w*Error$/u.test(name))
    return true
  return 'code' in error && typeof error.code === 'string' && /^E[A-Z]+$/u.test(error.code)
}
