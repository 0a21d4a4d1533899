/**
 * The page's sign-in with an OpenID provider: the code flow with PKCE, state and nonce. The session is a sealed cookie, so any instance can read it
 * and nothing is stored.
 *
 * - `GET /auth/login?return=/path` sends the browser to the issuer.
 * - `GET /auth/callback` is where the issuer sends it back to.
 * - `POST /auth/logout` ends the session of this browser, with 204.
 */
import * as oauth from 'oauth4webapi'
import { MillraceError } from '../../part/error.ts'
import { parseJson } from '../../part/json.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { ownValue } from '../../part/own-value.ts'
import { roles as knownRoles, type Claim, type Principal } from '../../part/principal.ts'
import type { JwtConfig, LoginConfig } from '../../project/config.ts'
import { longestCookie, type CookieSeal } from './cookie-seal.ts'
import { asBrowserSent, ownOrigin } from '../http/own-origin.ts'
import { personPage } from '../http/person-page.ts'
import { readCookie, writeCookie } from './cookie.ts'
import { createOidcClient, whyOf } from './oidc-client.ts'
import { checkSameOrigin } from './same-origin.ts'
import { ClaimError, principalOfClaims } from './token-principal.ts'

export interface Login {
  /** Tokens that `millrace login` gets from the issuer are for the page's client, and count like its sessions. */
  readonly tokens: JwtConfig
  /** Tells `millrace login` where to sign in. */
  readonly issuer: { issuer: string; clientId: string; scope: string }
  /** Undefined for paths that are not of the sign-in. Rejects with `forbidden` for a sign-out by a page of another site. */
  signIn(request: Pick<Request, 'method' | 'headers' | 'url'>, path: string): Promise<Response> | undefined
  /** Who is signed in. Undefined without a session, and for one that has ended, was changed, or is of another server. */
  identify(headers: Headers): Promise<Principal | undefined>
}

export interface LoginOptions {
  /** All instances share its key. */
  seal: CookieSeal
  /** Epoch ms. */
  now: () => number
  fetch?: typeof fetch | undefined
  /** Why somebody could not sign in: for the operator. */
  report: (error: unknown) => void
  /** The claims that reach the principal. Default: none. */
  claims?: readonly string[] | undefined
  /** Has the variable of `secretEnv`. */
  environment?: Readonly<Record<string, string | undefined>>
}

const sessionCookie = 'millrace_session'
/** What the browser keeps during a sign-in. */
const flowCookie = 'millrace_sign_in'
/** Sign-in again after this, however long the token counts. */
const longestSessionMs = 12 * 3_600_000
/** How long a person may take at the issuer. */
const longestSignInMs = 600_000
const longestReturn = 500

/** Throws `bad-config` if the variable of `secretEnv` is not set. */
export function createLogin(config: LoginConfig, options: LoginOptions): Login {
  const { seal, now, fetch, report, claims, environment = {} } = options
  const { issuer, clientId, scope = 'openid profile', secretEnv, url: ownUrl, user, tenant, roles } = config
  const secret = secretEnv === undefined ? undefined : ownValue(environment, secretEnv)
  if (secretEnv !== undefined && !secret) {
    const place = 'millrace.config.ts: server.access.login.secretEnv'
    throw new MillraceError('bad-config', `${place}: the variable ${secretEnv} is not set.`)
  }
  const oidc = createOidcClient({ issuer, clientId, secret, now, fetch })

  const seen = (headers: Headers) => asBrowserSent(headers, ownUrl)
  const originOf = (headers: Headers) => ownOrigin(headers, ownUrl)

  async function begin(request: Pick<Request, 'headers' | 'url'>): Promise<Response> {
    const headers = seen(request.headers)
    const origin = originOf(headers)
    const server = await discovered()
    if (server?.authorization_endpoint === undefined) return unavailable()
    const [state, nonce, verifier] = [oauth.generateRandomState(), oauth.generateRandomNonce(), newVerifier()]
    const back = returnPath(new URL(request.url).searchParams.get('return'), origin)
    const flow = await seal.seal(JSON.stringify({ kind: 'sign-in', state, nonce, verifier, back, at: now() }))
    const to = new URL(server.authorization_endpoint)
    const asked = {
      client_id: clientId,
      redirect_uri: `${origin}/auth/callback`,
      response_type: 'code',
      scope,
      state,
      nonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }
    for (const [name, value] of Object.entries(asked)) to.searchParams.set(name, value)
    return redirect(to.href, [writeCookie({ headers }, flowCookie, flow, longestSignInMs / 1000)])
  }

  async function finish(request: Pick<Request, 'headers' | 'url'>): Promise<Response> {
    const headers = seen(request.headers)
    const origin = originOf(headers)
    const over = writeCookie({ headers }, flowCookie, '', 0)
    const flow = await opened(readCookie({ headers }, flowCookie), 'sign-in')
    const [state, nonce, verifier, back] = ['state', 'nonce', 'verifier', 'back'].map((key) => textOf(flow, key))
    const age = now() - (numberOf(flow, 'at') ?? -Infinity)
    if (state === undefined || nonce === undefined || verifier === undefined || age > longestSignInMs) {
      return refusal(400, 'This sign-in has taken too long, or it began in another window.', over)
    }
    const server = await discovered()
    if (server === undefined) return unavailable()
    let token: oauth.IDToken
    try {
      const { client, auth, options: http } = oidc
      const given = oauth.validateAuthResponse(server, client, new URL(request.url), state)
      const redirectUri = `${origin}/auth/callback`
      const answer = await oauth.authorizationCodeGrantRequest(server, client, auth, given, redirectUri, verifier, http)
      const checks = { expectedNonce: nonce, requireIdToken: true }
      const tokens = await oauth.processAuthorizationCodeResponse(server, client, answer, checks)
      token = oauth.getValidatedIdTokenClaims(tokens)!
    } catch (error) {
      if (error instanceof oauth.AuthorizationResponseError && error.error === 'access_denied') {
        return refusal(403, 'The sign-in was cancelled.', over)
      }
      report(new Error(`A sign-in with ${issuer} failed: ${whyOf(error)}.`))
      return refusal(400, 'The sign-in failed.', over)
    }
    let principal: Principal
    try {
      principal = principalOfClaims(token, config, claims)
    } catch (error) {
      if (!(error instanceof ClaimError)) throw error
      report(new Error(`A sign-in with ${issuer} was refused. ${error.message}`))
      return refusal(403, 'Your account cannot be used here.', over)
    }
    const end = Math.min(token.exp * 1000, now() + longestSessionMs)
    const session = await seal.seal(JSON.stringify({ kind: 'session', issuer, clientId, ...principal, end }))
    if (session.length > longestCookie) {
      report(
        new Error(`A sign-in with ${issuer} was refused: its claims are too long for a cookie. List fewer of them.`),
      )
      return refusal(403, 'Your account cannot be used here.', over)
    }
    const maxAge = Math.max(0, Math.floor((end - now()) / 1000))
    return redirect(origin + (back ?? '/'), [over, writeCookie({ headers }, sessionCookie, session, maxAge)])
  }

  async function leave(request: Pick<Request, 'method' | 'headers'>): Promise<Response> {
    const headers = seen(request.headers)
    checkSameOrigin({ method: request.method, headers })
    const over = writeCookie({ headers }, sessionCookie, '', 0)
    return new Response(null, { status: 204, headers: { 'set-cookie': over, 'cache-control': 'no-store' } })
  }

  async function discovered(): Promise<oauth.AuthorizationServer | undefined> {
    try {
      return await oidc.discover()
    } catch (error) {
      report(new Error(`The issuer ${issuer} cannot be reached: ${whyOf(error)}.`))
      return undefined
    }
  }

  /** What a cookie of ours says. Undefined for anything else. */
  async function opened(cookie: string | undefined, kind: string): Promise<Record<string, unknown> | undefined> {
    const inside = cookie === undefined ? undefined : await seal.open(cookie)
    const found = inside === undefined ? undefined : (parseJson(inside.text) as Record<string, unknown>)
    return textOf(found, 'kind') === kind ? found : undefined
  }

  return {
    issuer: { issuer, clientId, scope },
    tokens: { issuer, audience: clientId, ...omitUndefined({ user, tenant, roles }) },
    signIn(request, path) {
      const { method } = request
      if (path === '/auth/login' && method === 'GET') return begin(request)
      if (path === '/auth/callback' && method === 'GET') return finish(request)
      if (path === '/auth/logout' && method === 'POST') return leave(request)
      return undefined
    },
    async identify(headers) {
      const found = await opened(readCookie({ headers: seen(headers) }, sessionCookie), 'session')
      const [id, end] = [textOf(found, 'id'), numberOf(found, 'end') ?? 0]
      // A session of an issuer that the config no longer names has ended.
      const isOurs = textOf(found, 'issuer') === issuer && textOf(found, 'clientId') === clientId
      if (id === undefined || !isOurs || end <= now()) return undefined
      const given = ownValue(found, 'roles')
      return omitUndefined({
        id,
        tenant: textOf(found, 'tenant'),
        roles: Array.isArray(given) ? knownRoles.filter((each) => given.includes(each)) : [],
        name: textOf(found, 'name'),
        claims: ownValue(found, 'claims') as Record<string, Claim> | undefined,
        expiresAt: end,
      })
    },
  }
}

const newVerifier = () => oauth.generateRandomCodeVerifier()

/** A path of this server, never of another: the value comes from a link that anybody may have made. */
function returnPath(given: string | null, origin: string): string {
  const url = given?.startsWith('/') === true && given.length <= longestReturn ? URL.parse(given, origin) : null
  if (url === null || url.origin !== origin || url.pathname.startsWith('/auth/')) return '/'
  const path = url.pathname + url.search + url.hash
  return path.length <= longestReturn ? path : '/'
}

function textOf(found: Record<string, unknown> | undefined, key: string): string | undefined {
  const value = ownValue(found, key)
  return typeof value === 'string' ? value : undefined
}

function numberOf(found: Record<string, unknown> | undefined, key: string): number | undefined {
  const value = ownValue(found, key)
  return typeof value === 'number' ? value : undefined
}

function redirect(location: string, cookies: readonly string[]): Response {
  const headers = new Headers({ location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  for (const cookie of cookies) headers.append('set-cookie', cookie)
  return new Response(null, { status: 303, headers })
}

const unavailable = () => refusal(503, 'The sign-in is not available at the moment.')

/** A page, because a person looks at it. Nothing of the request is in it. */
function refusal(status: number, message: string, cookie?: string): Response {
  return personPage(status, `<p>${message}</p><p><a href="/auth/login">Sign in again</a></p>`, cookie)
}
