/** Tokens of an OpenID provider for a program without a browser: the device flow (RFC 8628), and the next token after that. */
import * as oauth from 'oauth4webapi'
import { MillraceError } from '../../part/error.ts'
import { createOidcClient, whyOf, type OidcClient } from '../../server/access/oidc-client.ts'
import type { Credential } from './credentials.ts'

export interface Issuer {
  issuer: string
  clientId: string
  /** Default `openid profile`. */
  scope?: string | undefined
}

export interface DeviceFlowOptions {
  /** Shows a person where to sign in. `code`: what to type there. */
  show(address: string, code: string): void
  /** Waits so many ms. */
  wait(ms: number): Promise<void>
  /** Epoch ms. */
  now(): number
}

type TokenCredential = Extract<Credential, { type: 'token' }>

/** Undefined if the issuer has no device flow. Rejects with `sign-in-failed`. */
export async function signInByDevice(
  { issuer, clientId, scope = 'openid profile' }: Issuer,
  { show, wait, now }: DeviceFlowOptions,
): Promise<TokenCredential | undefined> {
  const oidc = createOidcClient({ issuer, clientId, now })
  try {
    const server = await oidc.discover()
    if (server.device_authorization_endpoint === undefined) return undefined
    const { client, auth, options } = oidc
    // The issuer then also gives the token that gets the next one.
    const more = server.scopes_supported?.includes('offline_access') === true ? ' offline_access' : ''
    const asked = { scope: scope + more }
    const response = await oauth.deviceAuthorizationRequest(server, client, auth, asked, options)
    const device = await oauth.processDeviceAuthorizationResponse(server, client, response)
    show(webAddress(device.verification_uri_complete ?? device.verification_uri), device.user_code)
    const until = now() + device.expires_in * 1000
    let intervalMs = (device.interval ?? 5) * 1000
    while (now() < until) {
      await wait(intervalMs)
      const tokens = await poll(oidc, server, device.device_code)
      if (tokens === 'slow_down') intervalMs += 5000
      else if (tokens !== 'authorization_pending') return needed(credentialOf(tokens, { issuer, clientId }), issuer)
    }
  } catch (error) {
    throw failed(issuer, error)
  }
  throw new MillraceError('sign-in-failed', 'The code has expired. Run millrace login again.')
}

async function poll(
  { client, auth, options }: OidcClient,
  server: oauth.AuthorizationServer,
  code: string,
): Promise<oauth.TokenEndpointResponse | 'authorization_pending' | 'slow_down'> {
  try {
    const response = await oauth.deviceCodeGrantRequest(server, client, auth, code, options)
    return await oauth.processDeviceCodeResponse(server, client, response)
  } catch (error) {
    const waits = error instanceof oauth.ResponseBodyError ? error.error : ''
    if (waits === 'authorization_pending' || waits === 'slow_down') return waits
    throw error
  }
}

/** The next token. Undefined if the issuer gives none: the person must sign in again. */
export async function refreshed(credential: TokenCredential, now: () => number): Promise<TokenCredential | undefined> {
  const { issuer, clientId, refreshToken } = credential
  if (refreshToken === undefined) return undefined
  try {
    const oidc = createOidcClient({ issuer, clientId, now })
    const server = await oidc.discover()
    const { client, auth, options } = oidc
    const response = await oauth.refreshTokenGrantRequest(server, client, auth, refreshToken, options)
    const tokens = await oauth.processRefreshTokenResponse(server, client, response)
    // It may keep the token that got this one, and may leave out an ID token.
    return credentialOf(tokens, { issuer, clientId }, refreshToken)
  } catch (error) {
    // The issuer has ended it. Everything else may be better in a moment.
    if (error instanceof oauth.ResponseBodyError) return undefined
    throw failed(issuer, error)
  }
}

/** The ID token: it is for this client, which the server knows as its own. Undefined without one. */
function credentialOf(
  tokens: oauth.TokenEndpointResponse,
  { issuer, clientId }: Issuer,
  earlier?: string,
): TokenCredential | undefined {
  const claims = oauth.getValidatedIdTokenClaims(tokens)
  const { id_token: token, refresh_token: refreshToken = earlier } = tokens
  if (claims === undefined || token === undefined) return undefined
  const expiresAt = claims.exp * 1000
  return { type: 'token', token, expiresAt, ...(refreshToken !== undefined && { refreshToken }), issuer, clientId }
}

function needed(credential: TokenCredential | undefined, issuer: string): TokenCredential {
  if (credential !== undefined) return credential
  throw new MillraceError('sign-in-failed', `${issuer} has sent no ID token.`)
}

/** It is printed, and a person opens it. */
function webAddress(text: string): string {
  const url = URL.parse(text)
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return url.href
  throw new MillraceError('sign-in-failed', 'The issuer has sent an address that is no web page.')
}

function failed(issuer: string, error: unknown): MillraceError {
  if (error instanceof MillraceError) return error
  return new MillraceError('sign-in-failed', `The sign-in with ${issuer} failed: ${whyOf(error)}.`)
}
