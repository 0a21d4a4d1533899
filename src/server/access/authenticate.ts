/** The application's own function that says who makes a request, bounded and checked. */
import { MillraceError, wholeMessage } from '../../part/error.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { anyone, roles as knownRoles, type Principal, type Role } from '../../part/principal.ts'
import type { Authenticated } from '../../project/config.ts'
import type { AccessRequest } from './access.ts'

export interface AuthenticateOptions {
  now: () => number
  /** Why somebody could not be asked: for the operator. */
  report: (error: unknown) => void
  /** The claims that agents may read. */
  claims?: readonly string[] | undefined
  /** ms that it may take. Default 5000. */
  patienceMs?: number | undefined
}

/** Asks the application, for a while. Its failures are for the operator; the caller gets a 503, never an open door. */
export function createAuthenticate(
  ask: (request: Request) => Authenticated | Promise<Authenticated>,
  { now, report, patienceMs = 5000, claims }: AuthenticateOptions,
): (request: AccessRequest) => Promise<Principal | undefined> {
  const kept = new Map<string, { principal: Principal; until: number }>()

  return async (request) => {
    const name = ['authorization', 'cookie'].map((each) => request.headers.get(each) ?? '').join('\n')
    const known = kept.get(name)
    if (known !== undefined && known.until > now()) return known.principal
    kept.delete(name)
    const answer = await withinTime(ask, request)
    if (answer === null || answer === undefined) return undefined
    if (typeof answer === 'boolean') {
      if (answer) return anyone
      throw new MillraceError('forbidden', 'This request is not allowed here.', { status: 403 })
    }
    const principal = toPrincipal(answer, claims)
    if (principal === undefined) {
      report(new Error('authenticate must return { id, tenant?, roles?, name?, claims? }, null, true or false.'))
      throw unavailable()
    }
    const { cacheSeconds = 0 } = answer
    if (cacheSeconds > 0) {
      if (kept.size >= mostKept) kept.delete(kept.keys().next().value!)
      kept.set(name, { principal, until: now() + cacheSeconds * 1000 })
    }
    return principal
  }

  async function withinTime(asked: typeof ask, request: AccessRequest): Promise<Authenticated> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`authenticate took more than ${patienceMs} ms.`)), patienceMs)
    })
    try {
      return await Promise.race([Promise.resolve().then(() => asked(request.request())), late])
    } catch (error) {
      report(new Error(`authenticate: ${wholeMessage(error)}`, { cause: error }))
      throw unavailable()
    } finally {
      clearTimeout(timer)
    }
  }
}

/** Maximum number of callers of the application that are remembered. */
const mostKept = 10_000

function unavailable(): MillraceError {
  const cure = 'Try again in a moment.'
  return new MillraceError('access-unavailable', `It cannot be found out who you are. ${cure}`, {
    status: 503,
    retryAfter: 5,
  })
}

/** What an application or a token says, checked. Undefined if it cannot be used. */
export function toPrincipal(
  given: Exclude<Authenticated, boolean | null>,
  claims: readonly string[] = [],
): Principal | undefined {
  const { id, tenant, name, expiresAt } = given
  const isId = (value: unknown) => typeof value === 'string' && value.length >= 1 && value.length <= 256
  if (!isId(id) || (tenant !== undefined && !isId(tenant))) return undefined
  const listed =
    given.roles === undefined ? ['user' as const] : knownRoles.filter((each) => given.roles!.includes(each))
  if (listed.length === 0) return undefined
  const shown = Object.entries(given.claims ?? {}).filter(
    ([key, value]) => claims.includes(key) && ['string', 'number', 'boolean'].includes(typeof value),
  )
  return {
    id,
    roles: listed satisfies Role[],
    ...omitUndefined({ tenant, name, expiresAt }),
    ...(shown.length > 0 && { claims: Object.fromEntries(shown) }),
  }
}
