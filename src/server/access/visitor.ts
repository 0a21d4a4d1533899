/** Browsers that have not signed in: each is a user of its own, by a sealed cookie. */
import type { Log } from '../../part/log.ts'
import type { Principal } from '../../part/principal.ts'
import type { AccessRequest } from './access.ts'
import { readCookie, writeCookie } from './cookie.ts'
import { createCookieSeal } from './cookie-seal.ts'

const cookieName = 'millrace_visitor'
/** In seconds: as long as its seal opens at least. */
const maxAge = 30 * 86_400
/** Maximum number of cookies that are remembered, so that they need not be opened again. */
const mostKept = 10_000

export interface Visitors {
  /** `isKnown`: it has sent the cookie. */
  identify(
    request: AccessRequest,
  ): { principal: Principal; isKnown: boolean } | Promise<{ principal: Principal; isKnown: boolean }>
}

export function createVisitors(log: Pick<Log, 'post'>, now: () => number): Visitors {
  const cookies = createCookieSeal(log, 'visitor', now)
  const kept = new Map<string, { principal: Principal; until: number }>()

  async function open(request: AccessRequest, given: string | undefined) {
    const opened = given === undefined ? undefined : await cookies.open(given)
    const id = opened?.text ?? `anonymous:${crypto.randomUUID()}`
    if (opened === undefined || opened.isOld) {
      request.setCookie(writeCookie(request, cookieName, await cookies.seal(id), maxAge))
    }
    const principal: Principal = { id, roles: ['user'] }
    if (opened?.isOld === false) {
      if (kept.size >= mostKept) kept.delete(kept.keys().next().value!)
      kept.set(given!, { principal, until: now() + 60_000 })
    }
    return { principal, isKnown: opened !== undefined }
  }

  return {
    identify(request) {
      const given = readCookie(request, cookieName)
      const known = given === undefined ? undefined : kept.get(given)
      if (known !== undefined && known.until > now()) return { principal: known.principal, isKnown: true }
      return open(request, given)
    },
  }
}
