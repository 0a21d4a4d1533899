/**
 * Who makes a request, by the ways of the config, in this order: the server's key, keys, a JWT, the application's own function, the session of the
 * page's sign-in, a browser without a name.
 */
import { isOtherPage, senderOf } from '../http/origin-check.ts'
import { createKeyCheck, hashText } from '../http/key.ts'
import { createSeal } from '../http/sealed-text.ts'
import { MillraceError, wholeMessage } from '../../part/error.ts'
import type { Log } from '../../part/log.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { anyone, roles as knownRoles, type Principal, type Role } from '../../part/principal.ts'
import type { AccessConfig, Authenticated } from '../../project/config.ts'
import type { Access, AccessRequest } from './access.ts'
import { createExpiry } from './expiry.ts'
import { openKeyBook, principalOf } from './key-book.ts'
import { keyHolder } from './simple-access.ts'

export interface AccessOptions {
  config: AccessConfig
  /** The server's own key. */
  apiKey?: string | undefined
  /** The secrets of the config's keys, by the names of their variables. */
  environment: Readonly<Record<string, string | undefined>>
  log: Pick<Log, 'post' | 'inbox'>
  now: () => number
  /** Origins whose pages may use a session. */
  allowedOrigins?: ReadonlySet<string>
  /** Why somebody could not be asked: for the operator. */
  report: (error: unknown) => void
  /** ms that `authenticate` may take. Default 5000. */
  patienceMs?: number
}

/** One text for everything that does not count: it tells nobody what was nearly right. */
export function unauthorized(): MillraceError {
  return new MillraceError('unauthorized', 'Send the header Authorization: Bearer <key>.', { status: 401 })
}

export async function createAccess(options: AccessOptions): Promise<Access> {
  const { config, apiKey, environment, log, now, allowedOrigins = new Set<string>(), report } = options
  const allowsKey = apiKey === undefined ? undefined : createKeyCheck(apiKey)
  const configured = await readConfigured(config, environment)
  const book = openKeyBook(log, report)
  await book.ready
  const expiry = createExpiry(now)
  const visitors = config.anonymous === 'user' ? createSeal(log, 'visitors') : undefined
  const authenticate = config.authenticate && createAuthenticate(config.authenticate, options)

  /** By its secret: the server's, one of the config, or a stored one. */
  async function byKey(secret: string): Promise<Principal | undefined> {
    if (allowsKey?.(`Bearer ${secret}`) === true) return keyHolder
    const digest = digestOf(secret) ?? (await hashText(secret))
    const known = configured.get(digest)
    if (known !== undefined) return (known.expiresAt ?? Infinity) > now() ? known : undefined
    return book.find(digest, now())
  }

  async function bySecret(secret: string, request: AccessRequest): Promise<Principal> {
    const found = await byKey(secret)
    if (found !== undefined) return found
    // The application may have tokens of its own.
    const own = await authenticate?.(request)
    if (own !== undefined) return own
    throw unauthorized()
  }

  async function bySession(request: AccessRequest): Promise<Principal> {
    const found = (await authenticate?.(request)) ?? (await byVisit(request))
    if (found === undefined) throw unauthorized()
    checkSender(request)
    return found
  }

  async function byVisit(request: AccessRequest): Promise<Principal | undefined> {
    if (visitors === undefined) return undefined
    const cookie = cookieOf(request.headers, visitorCookie)
    const known = cookie === undefined ? undefined : await visitors.open(cookie)
    const id = known ?? `anonymous:${crypto.randomUUID()}`
    if (known === undefined) request.setCookie(visitCookie(await visitors.seal(id), request))
    return { id, roles: ['user'] }
  }

  /** Browsers send cookies with the requests of any page. */
  function checkSender({ headers, method }: AccessRequest): void {
    if (method === 'GET' || method === 'HEAD' || !headers.has('cookie')) return
    const sender = senderOf(headers)
    if (!isOtherPage(sender) || (sender.origin !== undefined && allowedOrigins.has(sender.origin))) return
    throw new MillraceError('forbidden', 'Pages of other sites may not use your session here.', { status: 403 })
  }

  return {
    identify(request) {
      const secret = secretIn(request.headers)
      return secret === undefined ? bySession(request) : bySecret(secret, request)
    },
    onExpired(principal, end) {
      const over = () =>
        end(new MillraceError('unauthorized', 'Your access has ended. Sign in again.', { status: 401 }))
      const leaves = [
        principal.key === undefined ? undefined : book.onRevoked(principal, over),
        principal.expiresAt === undefined ? undefined : expiry.at(principal.expiresAt, over),
      ]
      return () => {
        for (const leave of leaves) leave?.()
      }
    },
    ways: { key: true, login: false, anonymous: visitors !== undefined },
    readsCookies: authenticate !== undefined || visitors !== undefined,
    close() {
      book.close()
      expiry.close()
    },
  }
}

/** Throws `two-credentials` if they differ. */
function secretIn(headers: Headers): string | undefined {
  const authorization = headers.get('authorization')
  const bearer = authorization === null ? undefined : (/^Bearer\s+(\S.*)$/iu.exec(authorization)?.[1]?.trim() ?? '')
  const key = headers.get('x-api-key') ?? undefined
  if (bearer !== undefined && key !== undefined && bearer !== key) {
    const cure = 'Send one of Authorization and X-API-Key.'
    throw new MillraceError('two-credentials', `This request has two credentials. ${cure}`, { status: 400 })
  }
  return bearer ?? key
}

/** The keys of the config, by the digests of their secrets. */
async function readConfigured(
  { keys = [] }: AccessConfig,
  environment: AccessOptions['environment'],
): Promise<Map<string, Principal>> {
  const found = new Map<string, Principal>()
  for (const [i, { name, env, role, tenant, agents, expires }] of keys.entries()) {
    const place = `server.access.keys[${i}]`
    const secret = environment[env]
    if (secret === undefined || secret === '') throw badConfig(`${place}.env: the variable ${env} is not set`)
    if (secret.length < shortestKey) {
      throw badConfig(`${place}: the key in ${env} must have at least ${shortestKey} characters`)
    }
    const expiresAt = expires === undefined ? undefined : endOf(expires)
    const key = { name, role: role ?? 'user', createdAt: 0, ...omitUndefined({ tenant, agents, expiresAt }) }
    found.set(await hashText(secret), principalOf(key))
  }
  return found
}

/** The least number of characters of a key. */
export const shortestKey = 32

function badConfig(message: string): MillraceError {
  return new MillraceError('bad-config', `millrace.config.ts: ${message}.`)
}

/** A day ends at midnight UTC. Undefined for what is no date. */
export function endOf(date: string): number | undefined {
  const isDay = /^\d{4}-\d{2}-\d{2}$/u.test(date)
  const time = Date.parse(isDay ? `${date}T23:59:59.999Z` : date)
  return Number.isNaN(time) ? undefined : time
}

/** Synchronous: Web Crypto works on another thread, and every request would wait for it. Undefined without Node. */
function digestOf(text: string): string | undefined {
  return globalThis.process?.getBuiltinModule?.('node:crypto')?.createHash('sha256').update(text).digest('hex')
}

const visitorCookie = 'millrace_visitor'
/** In seconds: a year. */
const visitAge = 31_536_000

function visitCookie(value: string, { headers }: AccessRequest): string {
  const host = headers.get('host') ?? ''
  const isHere = /^(?:localhost|127\.|\[::1\])/u.test(host)
  return `${visitorCookie}=${value}; Path=/; Max-Age=${visitAge}; HttpOnly; SameSite=Lax${isHere ? '' : '; Secure'}`
}

export function cookieOf(headers: Headers, name: string): string | undefined {
  for (const pair of (headers.get('cookie') ?? '').split(';')) {
    const at = pair.indexOf('=')
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim()
  }
  return undefined
}

/** Asks the application, for a while. Its failures are for the operator; the caller gets a 503, never an open door. */
function createAuthenticate(
  ask: NonNullable<AccessConfig['authenticate']>,
  { now, report, patienceMs = 5000, config }: AccessOptions,
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
    const principal = toPrincipal(answer, config.claims)
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
      report(new Error(`server.access.authenticate: ${wholeMessage(error)}`, { cause: error }))
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
