/** What a caller is told whose credentials do not count. */
import { MillraceError } from '../../part/error.ts'

/** One text for everything that does not count: it tells nobody what was nearly right. */
export function unauthorized(): MillraceError {
  return new MillraceError('unauthorized', 'Send the header Authorization: Bearer <key>.', { status: 401 })
}

export function accessEnded(): MillraceError {
  return new MillraceError('unauthorized', 'Your access has ended. Sign in again.', { status: 401 })
}

export function twoCredentials(): MillraceError {
  const cure = 'Send one of Authorization and X-API-Key.'
  return new MillraceError('two-credentials', `This request has two credentials. ${cure}`, { status: 400 })
}

/** Why is for the operator: see `report`. */
export function accessUnavailable(): MillraceError {
  const message = 'It cannot be found out who you are. Try again in a moment.'
  return new MillraceError('access-unavailable', message, { status: 503, retryAfter: 5 })
}

export function otherPage(): MillraceError {
  return new MillraceError(
    'forbidden',
    'Pages of other sites may not use your session here. Add the origin of the page to server.allowedOrigins.',
    { status: 403 },
  )
}
