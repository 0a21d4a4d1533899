/** Access by one key, or by the application's own functions: what `createHandler` has without a config. Runs everywhere. */
import { MillraceError } from '../../part/error.ts'
import { anyone, type Principal } from '../../part/principal.ts'
import type { Authenticated } from '../../project/config.ts'
import { createKeyCheck } from '../http/key.ts'
import type { Access, AccessRequest } from './access.ts'
import { createAuthenticate } from './authenticate.ts'
import { checkOtherPage } from './cookie.ts'
import { createExpiry } from './expiry.ts'

/** The holder of the server's key. Its runs belong to no one. */
export const keyHolder: Principal = { id: '', roles: ['admin'], key: 'MILLRACE_API_KEY' }

export interface SimpleAccess {
  apiKey?: string | undefined
  /** False is answered with 403. */
  authorize?: ((request: Request) => boolean | Promise<boolean>) | undefined
  /** Who it is. null is answered with 401, false with 403; true may do everything. */
  authenticate?: ((request: Request) => Authenticated | Promise<Authenticated>) | undefined
  /** Origins whose pages may use a session of the application. */
  allowedOrigins?: ReadonlySet<string>
  now: () => number
  report: (error: unknown) => void
}

export function createSimpleAccess(options: SimpleAccess): Access {
  const { apiKey, authorize, allowedOrigins = new Set<string>(), now, report, ...ways } = options
  const allowsKey = apiKey === undefined ? undefined : createKeyCheck(apiKey)
  const authenticate = ways.authenticate && createAuthenticate(ways.authenticate, { now, report })
  const expiry = createExpiry(now)

  async function authorized(request: AccessRequest): Promise<Principal> {
    if (await authorize!(request.request())) {
      checkOtherPage(request, allowedOrigins)
      return anyone
    }
    throw new MillraceError('forbidden', 'This request is not allowed here.')
  }

  async function authenticated(request: AccessRequest): Promise<Principal> {
    const found = await authenticate!(request)
    if (found !== undefined) {
      checkOtherPage(request, allowedOrigins)
      return found
    }
    throw new MillraceError('unauthorized', 'Sign in first.', { status: 401 })
  }

  return {
    identify(request) {
      const { headers } = request
      const key = headers.get('x-api-key')
      const given = headers.get('authorization') ?? (key === null ? null : `Bearer ${key}`)
      const allowed = allowsKey?.(given)
      // The holder of the key need not be known to the application.
      if (authenticate !== undefined) return allowed === true ? keyHolder : authenticated(request)
      if (allowed === false) throw new MillraceError('unauthorized', 'Send the header Authorization: Bearer <key>.')
      if (authorize !== undefined) return authorized(request)
      return allowsKey === undefined ? anyone : keyHolder
    },
    onExpired: ({ expiresAt }, end) =>
      expiresAt === undefined
        ? () => undefined
        : expiry.at(expiresAt, () => end(new MillraceError('unauthorized', 'Your access has ended. Sign in again.'))),
    ways: { key: allowsKey !== undefined, login: false, anonymous: false },
    readsCookies: authorize !== undefined || authenticate !== undefined,
    close: () => expiry.close(),
  }
}
