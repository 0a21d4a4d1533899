/**
 * Finds the authorization server of an MCP server: by the metadata of the protected resource (RFC 9728), then by its own (RFC 8414, OpenID
 * Connect Discovery).
 *
 * What an MCP server says here decides where secrets and people are sent, so its metadata are asked for at its own origin only, and must be about itself.
 */
import * as oauth from 'oauth4webapi'
import { parseJson } from '../../../part/json.ts'
import { isLoopback } from '../../../part/loopback.ts'
import { ownValue } from '../../../part/own-value.ts'
import { boundResponse } from '../../../models/limits/bounded-response.ts'
import { discardBody, fetchWithinOrigin } from '../../../models/limits/within-origin.ts'
import { isObject } from '../../../pipeline/json-schema/keywords.ts'
import type { Fetch } from './authorized-fetch.ts'
import { issuedToken, type IssuedToken } from './token-source.ts'
import { unauthorized } from './unauthorized.ts'

export interface AuthorizationServer {
  metadata: oauth.AuthorizationServer
  /** What tokens are asked for (RFC 8707). */
  resource: string
  /** What the MCP server says that a client needs. */
  scope: string | undefined
  /** Of a request to it. */
  http: {
    signal: () => AbortSignal
    [oauth.customFetch]: (target: string, init: object) => Promise<Response>
    [oauth.allowInsecureRequests]: boolean
  }
}

export interface FindOptions {
  /** The MCP server by its name, for messages. */
  who: string
  url: string
  /** The authorization server of the config. */
  issuer?: string | undefined
  /** A secret or key of ours is sent to it. */
  isTrusted: boolean
  fetch?: Fetch | undefined
}

const timeoutMs = 5000
/** Metadata and tokens are short. */
const most = 1024 * 1024

/** Rejects with `mcp-unauthorized`, and with errors of the library and of `fetch`. */
export async function findAuthorizationServer(options: FindOptions): Promise<AuthorizationServer> {
  const { who, fetch = globalThis.fetch } = options
  const server = new URL(options.url)
  const signal = () => AbortSignal.timeout(timeoutMs)
  const isSafe = (url: URL | null) =>
    url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname) && isLoopback(server.hostname))

  /** Only to safe addresses, without redirects, and never more than a short answer. */
  async function ask(target: string | URL, init: RequestInit = {}): Promise<Response> {
    if (!isSafe(URL.parse(String(target)))) {
      throw unauthorized(who, 'its authorization server is not at an https:// address')
    }
    const response = await fetch(target, { ...init, redirect: 'manual' })
    const limits = { lineBytes: most, bodyBytes: most }
    return boundResponse(response, { who: `The authorization server of ${who}`, limits, shape: 'message' })
  }

  async function askServer(target: URL, headers: Record<string, string>): Promise<Response> {
    return fetchWithinOrigin(
      (url, init) => ask(url, init),
      discardBody,
      target.href,
      { headers, signal: signal() },
      who,
    )
  }

  const { resource, servers, scope } = await readResource(server, askServer, who)
  const issuer = new URL(options.issuer ?? servers[0] ?? server.origin)
  if (options.issuer === undefined && options.isTrusted && issuer.origin !== server.origin) {
    const why = 'it names an authorization server of another origin. If that is yours, set it as issuer in auth'
    throw unauthorized(who, why, `it names ${issuer.origin}`)
  }
  if (!isSafe(issuer)) throw unauthorized(who, 'its authorization server is not at an https:// address')
  const http: AuthorizationServer['http'] = {
    signal,
    [oauth.customFetch]: (target, init) => ask(target, init as RequestInit),
    // `ask` decides. The library would refuse this machine, too.
    [oauth.allowInsecureRequests]: true,
  }
  return { metadata: await readMetadata(issuer, http), resource, scope, http }
}

async function readMetadata(issuer: URL, http: AuthorizationServer['http']): Promise<oauth.AuthorizationServer> {
  const first = await oauth.discoveryRequest(issuer, { ...http, algorithm: 'oauth2' })
  if (first.status === 200) return oauth.processDiscoveryResponse(issuer, first)
  discardBody(first)
  return oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, http))
}

interface Resource {
  resource: string
  servers: string[]
  scope: string | undefined
}

/** Servers without metadata are their own authorization servers. */
async function readResource(
  server: URL,
  ask: (target: URL, headers: Record<string, string>) => Promise<Response>,
  who: string,
): Promise<Resource> {
  // Where it refuses a request, it says where its metadata are.
  const refusal = await ask(server, { accept: 'text/event-stream' })
  discardBody(refusal)
  const challenge = refusal.status === 401 ? (refusal.headers.get('www-authenticate') ?? '') : ''
  const named = URL.parse(parameterOf(challenge, 'resource_metadata') ?? '')
  const path = server.pathname === '/' ? '' : server.pathname
  const known = [`/.well-known/oauth-protected-resource${path}`, '/.well-known/oauth-protected-resource']
  const places = named === null ? known.map((each) => new URL(each, server)) : [named]
  for (const place of places) {
    if (place.origin !== server.origin) throw unauthorized(who, 'its metadata are at another origin')
    const response = await ask(place, { accept: 'application/json' })
    if (!response.ok) {
      discardBody(response)
      continue
    }
    const found: unknown = parseJson(await response.text())
    const resource = isObject(found) ? ownValue(found, 'resource') : undefined
    if (!isObject(found) || typeof resource !== 'string' || !covers(URL.parse(resource), server)) {
      throw unauthorized(who, 'its metadata are those of another resource')
    }
    const scopes = textsOf(found, 'scopes_supported').join(' ') || undefined
    return {
      resource,
      servers: textsOf(found, 'authorization_servers').filter((each) => URL.canParse(each)),
      scope: parameterOf(challenge, 'scope') ?? scopes,
    }
  }
  const own = new URL(server)
  own.hash = ''
  return { resource: own.href, servers: [], scope: parameterOf(challenge, 'scope') }
}

/** Whether a token for this resource is for this server: the same origin, and its path or one above. */
function covers(resource: URL | null, server: URL): boolean {
  if (resource?.origin !== server.origin) return false
  const folder = (path: string) => (path.endsWith('/') ? path : `${path}/`)
  return folder(server.pathname).startsWith(folder(resource.pathname))
}

/** A parameter of a challenge (`WWW-Authenticate`). */
function parameterOf(challenge: string, name: string): string | undefined {
  const [, quoted, bare] = new RegExp(String.raw`[\s,]${name}=(?:"([^"]*)"|([^\s,"]+))`, 'iu').exec(challenge) ?? []
  return (quoted ?? bare)?.slice(0, 2000) || undefined
}

function textsOf(found: Record<string, unknown>, key: string): string[] {
  const value = ownValue(found, key)
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string' && each !== '') : []
}

/** Finds it again when that was ten minutes ago. The one before counts while it cannot be found. */
export function rememberedServer(options: FindOptions, now: () => number): () => Promise<AuthorizationServer> {
  let known: { server: AuthorizationServer; at: number } | undefined
  return async () => {
    if (known !== undefined && now() - known.at < oldMs) return known.server
    try {
      known = { server: await findAuthorizationServer(options), at: now() }
    } catch (error) {
      if (known === undefined) throw error
    }
    return known.server
  }
}

const oldMs = 600_000

/** What the token endpoint has issued for a request at `asked`, epoch ms. Throws for a token that no header can have: it would be quoted in the error of whoever sends it. */
export function checkToken(
  { access_token: token, expires_in: seconds }: oauth.TokenEndpointResponse,
  asked: number,
): IssuedToken {
  if (!/^[\x21-\x7e]{1,16384}$/u.test(token)) throw new oauth.OperationProcessingError('the token cannot be sent')
  return issuedToken(token, asked, seconds === undefined ? undefined : seconds * 1000)
}

/** How a client with a secret says who it is. */
export function bySecret(server: oauth.AuthorizationServer, secret: string): oauth.ClientAuth {
  const ways = server.token_endpoint_auth_methods_supported
  // Some servers compare what stands in a Basic header without decoding it.
  return ways?.includes('client_secret_post') === true
    ? oauth.ClientSecretPost(secret)
    : oauth.ClientSecretBasic(secret)
}
