/**
 * Who makes a request, by the ways of the config, in this order: the server's key, keys, a JWT, the application's own function, the session of the
 * page's sign-in, a browser without a name.
 */
import { isOtherPage, senderOf } from '../http/origin-check.ts'
import { createKeyCheck, hashText } from '../http/key.ts'
import { createSeal } from '../http/sealed-text.ts'
import { MillraceError } from '../../part/error.ts'
import type { Log } from '../../part/log.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { Principal } from '../../part/principal.ts'
import type { AccessConfig } from '../../project/config.ts'
import type { Access, AccessRequest } from './access.ts'
import { createAuthenticate } from './authenticate.ts'
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
  patienceMs?: number | undefined
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
  const authenticate =
    config.authenticate && createAuthenticate(config.authenticate, { ...options, claims: config.claims })

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
