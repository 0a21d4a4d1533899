/** Failures that pass: Redis is away, starts, or moves. Whoever sent something sends it again. */
import { messageOf } from '../../part/error.ts'

const passing = /^(?:LOADING|CLUSTERDOWN|TRYAGAIN|MASTERDOWN|READONLY|BUSY|NOREPLICAS|MOVED|ASK|UNBLOCKED)\b/u

/** Whether an answer of Redis that is an error says to come back. */
export const isPassingReply = (message: string): boolean => passing.test(message)

/** Such an answer, given by a script for one of its operations. */
export class PassingError extends Error {}

const isReply = (error: Error) => /^(?:ErrorReply|SimpleError|BlobError|MultiErrorReply)$/u.test(error.constructor.name)

/** Whether Redis has answered, and the answer is no. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && isReply(error) && !isPassingReply(messageOf(error))
}

/** Whether to send again. An answer of Redis that is an error stays one, except those that say to come back. */
export function isAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof PassingError) return true
  const { name } = error.constructor
  if (isReply(error)) return isPassingReply(messageOf(error))
  if (/^(?:Client|Socket|Connection|Disconnects|Reconnect|RootNodes|Timeout|MaxCommand)\w*Error$/u.test(name))
    return true
  return 'code' in error && typeof error.code === 'string' && /^E[A-Z]+$/u.test(error.code)
}
