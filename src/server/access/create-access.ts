/**
 * Who makes a request, by the ways of the config, in this order: a key (the server's own, one of the config, a stored one), a
 * token of an issuer, the session of the page's sign-in, the application's own function, a browser without a name. A credential in a header that does not count is refused: what comes after
 * it is not asked, except the application, which may have tokens of its own.
 */
import { createKeyCheck } from '../http/key.ts'
import type { Log } from '../../part/log.ts'
import type { Principal } from '../../part/principal.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { AccessConfig, JwtConfig, LoginConfig } from '../../project/config.ts'
import type { Env } from '../../project/registry.ts'
import type { Access, AccessRequest } from './access.ts'
import { createAuthenticate } from './authenticate.ts'
import { readConfigKeys } from './config-keys.ts'
import { createCookieSeal } from './cookie-seal.ts'
import { checkOtherPage } from './cookie.ts'
import { checkSameOrigin } from './same-origin.ts'
import { digestOf, whenKnown } from './digest.ts'
import { createExpiry } from './expiry.ts'
import { keyPrefix, openKeyBook } from './key-book.ts'
import { keyNumberOf } from './key-number.ts'
import { accessEnded, twoCredentials, unauthorized } from './refusals.ts'
import { keyHolder } from './simple-access.ts'
import { startTimer, type StartTimer } from './timer.ts'
import { createVisitors } from './visitor.ts'

export interface AccessOptions {
  config: AccessConfig
  /** The server's own key. */
  apiKey?: string | undefined
  /** The secrets of the config's keys, by the names of their variables. */
  environment: Env
  log: Pick<Log, 'post' | 'inbox'>
  /** Epoch ms, by the clock of the store. */
  now: () => number
  /** Origins whose pages may use a session. */
  allowedOrigins?: ReadonlySet<string>
  /** Why somebody could not be asked: for the operator. */
  report: (error: unknown) => void
  /** ms that `authenticate` may take. Default 5000. */
  patienceMs?: number | undefined
  startTimer?: StartTimer
}

/** Rejects with `bad-config` for keys whose variables cannot be used, and with `store-failed`. */
export async function createAccess(options: AccessOptions): Promise<Access> {
  const { config, apiKey, environment, log, now, allowedOrigins = new Set<string>(), report } = options
  const { startTimer: start = startTimer, patienceMs } = options
  const { claims = [] } = config
  const holdsKey = apiKey === undefined ? undefined : createKeyCheck(apiKey)
  const configured = await readConfigKeys(config, environment)
  const visitors = config.anonymous === 'user' ? createVisitors(log, now) : undefined
  const ask =
    config.authenticate &&
    createAuthenticate(config.authenticate, { claims, now, report, startTimer: start, patienceMs })
  const seal = createCookieSeal(log, 'session', now)
  const login =
    config.login &&
    (await import('./login.ts')).createLogin(withClaimNames(config.login, config.jwt), {
      seal,
      now,
      report,
      claims,
      environment,
    })
  // Tokens that `millrace login` gets are for the page's client.
  const issuers = [config.jwt, login?.tokens].filter((each) => each !== undefined)
  const jwt =
    issuers.length === 0 ? undefined : (await import('./jwt.ts')).createJwtCheck(issuers, { now, report, claims })
  const expiry = createExpiry(now, (run, ms) => start(ms, run))
  const book = openKeyBook(log, { onError: report, taken: configured.names, startTimer: start })
  await book.ready

  function bySecret(secret: string, request: AccessRequest): Principal | Promise<Principal> {
    if (holdsKey?.(`Bearer ${secret}`) === true) return keyHolder
    return whenKnown(digestOf(secret), (digest) => {
      const found = configured.find(digest, now()) ?? book.find(digest, now())
      if (found !== undefined) return found
      if (secret.startsWith(keyPrefix)) throw unauthorized()
      if (jwt?.matches(secret) === true) return jwt.identify(secret)
      return byApplication(request)
    })
  }

  async function byApplication(request: AccessRequest): Promise<Principal> {
    const found = await ask?.(request)
    if (found === undefined) throw unauthorized()
    return found
  }

  async function byCookie(request: AccessRequest): Promise<Principal> {
    const session = await login?.identify(request.headers)
    if (session !== undefined) {
      checkSameOrigin(request, allowedOrigins)
      return session
    }
    const known = await ask?.(request)
    if (known !== undefined) {
      checkOtherPage(request, allowedOrigins)
      return known
    }
    const visit = await visitors?.identify(request)
    if (visit === undefined) throw unauthorized()
    if (visit.isKnown) checkSameOrigin(request, allowedOrigins)
    return visit.principal
  }

  return {
    identify(request) {
      const secret = secretIn(request.headers)
      if (secret === undefined) return byCookie(request)
      return secret === '' ? byApplication(request) : bySecret(secret, request)
    },
    onExpired(principal, end) {
      const { key, expiresAt } = principal
      let leaves: ((() => void) | undefined)[] = []
      const leave = () => {
        for (const each of leaves) each?.()
        leaves = []
      }
      let isOver = false
      const over = () => {
        if (isOver) return
        isOver = true
        leave()
        end(accessEnded())
      }
      leaves = [
        key === undefined ? undefined : book.onRevoked(key, over, keyNumberOf(principal)),
        expiresAt === undefined ? undefined : expiry.at(expiresAt, over),
      ]
      return leave
    },
    ways: { key: true, login: login !== undefined, anonymous: visitors !== undefined },
    ...(login !== undefined && { signIn: login.signIn }),
    ...(login !== undefined && { login: login.issuer }),
    readsCookies: login !== undefined || ask !== undefined || visitors !== undefined,
    close() {
      book.close()
      expiry.close()
      jwt?.close()
    },
  }
}

/** The claims of an issuer mean the same wherever its tokens come from: a person is one principal in the page and in a client. */
function withClaimNames(login: LoginConfig, jwt: JwtConfig | undefined): LoginConfig {
  if (jwt?.issuer !== login.issuer) return login
  const { user, tenant, roles } = jwt
  return { ...omitUndefined({ user, tenant, roles }), ...omitUndefined(login) }
}

/** Throws `two-credentials` if `Authorization` and `X-API-Key` differ. Empty: a header that says nothing. Undefined: no header. */
function secretIn(headers: Headers): string | undefined {
  const authorization = headers.get('authorization')
  const key = headers.get('x-api-key')
  const bearer = authorization === null ? undefined : (/^Bearer\s+(\S.*)$/iu.exec(authorization)?.[1]?.trim() ?? '')
  // Headers that are sent twice are joined.
  if (/,\s*Bearer\s/iu.test(bearer ?? '') || key?.includes(', ') === true) throw twoCredentials()
  if (bearer === undefined || bearer === '') return key ?? bearer
  if (key !== null && key !== bearer) throw twoCredentials()
  return bearer
}
