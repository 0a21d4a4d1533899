/** Refusals that every way to prove who asks has in common. */
import { MillraceError } from '../../part/error.ts'

/** One text for every credential that does not count: it tells nobody what was nearly right. */
export function unauthorized(): MillraceError {
  return new MillraceError('unauthorized', 'Send the header Authorization: Bearer <key>.', { status: 401 })
}

/** Who asks cannot be found out now. The operator learns why from the server's report. */
export function accessUnavailable(): MillraceError {
  const message = 'It cannot be found out who you are. Try again in a moment.'
  return new MillraceError('access-unavailable', message, { status: 503, retryAfter: 5 })
}
