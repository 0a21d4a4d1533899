/** Access by one key, or by the application's own functions: what `createHandler` has without a config. Runs everywhere. */
import { MillraceError } from '../../part/error.ts'
import { anyone, type Principal } from '../../part/principal.ts'
import { createKeyCheck } from '../http/key.ts'
import type { Access } from './access.ts'

/** The holder of the server's key. Its runs belong to no one. */
export const keyHolder: Principal = { id: '', roles: ['admin'], key: 'MILLRACE_API_KEY' }

export interface SimpleAccess {
  apiKey?: string | undefined
  /** False is answered with 403. */
  authorize?: ((request: Request) => boolean | Promise<boolean>) | undefined
}

export function createSimpleAccess({ apiKey, authorize }: SimpleAccess): Access {
  const allowsKey = apiKey === undefined ? undefined : createKeyCheck(apiKey)

  async function authorized(request: Request): Promise<Principal> {
    if (await authorize!(request)) return anyone
    throw new MillraceError('forbidden', 'This request is not allowed here.')
  }

  return {
    identify({ headers, request }) {
      if (allowsKey?.(headers.get('authorization')) === false) {
        throw new MillraceError('unauthorized', 'Send the header Authorization: Bearer <key>.')
      }
      if (authorize !== undefined) return authorized(request())
      return allowsKey === undefined ? anyone : keyHolder
    },
    onExpired: () => () => undefined,
    ways: { key: allowsKey !== undefined, login: false, anonymous: false },
    readsCookies: authorize !== undefined,
    close: () => undefined,
  }
}
