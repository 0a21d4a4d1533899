/** Failures that pass: Redis is away, starts, or moves. Whoever sent something sends it again. */
import { messageOf } from '../../part/error.ts'

const passing = /^(?:LOADING|CLUSTERDOWN|TRYAGAIN|MASTERDOWN|READONLY|BUSY|NOREPLICAS|MOVED|ASK|UNBLOCKED)\b/u

const isReply = (error: Error) => /^(?:ErrorReply|SimpleError|BlobError|MultiErrorReply)$/u.test(error.constructor.name)

/** Whether Redis has answered, and the answer is no. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && isReply(error) && !passing.test(messageOf(error))
}

/** Whether to send again. An answer of Redis that is an error stays one, except those that say to come back. */
export function isAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { name } = error.constructor
  if (isReply(error)) return passing.test(messageOf(error))
  if (/^(?:Client|Socket|Connection|Disconnects|Reconnect|RootNodes|Timeout|MaxCommand)\w*Error$/u.test(name))
    return true
  return 'code' in error && typeof error.code === 'string' && /^E[A-Z]+$/u.test(error.code)
}
