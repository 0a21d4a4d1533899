/** A client of an OpenID provider: its discovery, and what every request to it has in common. */
import * as oauth from 'oauth4webapi'
import { isLoopback } from '../../part/loopback.ts'

export interface OidcClientOptions {
  issuer: string
  clientId: string
  /** Default: a public client, which has none. */
  secret?: string | undefined
  /** Epoch ms. */
  now: () => number
  fetch?: typeof fetch | undefined
}

export interface OidcClient {
  client: oauth.Client
  auth: oauth.ClientAuth
  /** For each request. */
  options: Pick<oauth.HttpRequestOptions<'POST'>, typeof oauth.allowInsecureRequests | 'signal'>
  /** Fetched when it is older than ten minutes; the one before counts while the issuer is away. */
  discover(): Promise<oauth.AuthorizationServer>
}

const timeoutMs = 5000
const oldMs = 600_000

export function createOidcClient({ issuer, clientId, secret, now, fetch }: OidcClientOptions): OidcClient {
  const url = new URL(issuer)
  const client: oauth.Client = { client_id: clientId, [oauth.clockTolerance]: 60 }
  const options = {
    signal: () => AbortSignal.timeout(timeoutMs),
    // Otherwise the library refuses http.
    [oauth.allowInsecureRequests]: isLoopback(url.hostname),
    ...(fetch && { [oauth.customFetch]: (to: string, init: object) => fetch(to, init as RequestInit) }),
  }
  let known: { server: oauth.AuthorizationServer; at: number } | undefined

  return {
    get client() {
      return { ...client, [oauth.clockSkew]: Math.round((now() - Date.now()) / 1000) }
    },
    auth: secret === undefined ? oauth.None() : oauth.ClientSecretPost(secret),
    options,
    async discover() {
      if (known !== undefined && now() - known.at < oldMs) return known.server
      try {
        const response = await oauth.discoveryRequest(url, options)
        known = { server: await oauth.processDiscoveryResponse(url, response), at: now() }
      } catch (error) {
        if (known === undefined) throw error
      }
      return known.server
    },
  }
}

/** What an issuer or the connection to it said went wrong. The library's causes hold codes and tokens, so they are left out. */
export function whyOf(error: unknown): string {
  if (error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError) {
    const { error: code, error_description: words } = error
    return `the issuer answered ${code}${words === undefined ? '' : ` (${words.slice(0, 200)})`}`
  }
  if (!(error instanceof Error)) return 'an unknown error'
  const isConnection = error instanceof TypeError && error.cause instanceof Error
  return isConnection ? `${error.message}: ${(error.cause as Error).message}` : error.message
}
