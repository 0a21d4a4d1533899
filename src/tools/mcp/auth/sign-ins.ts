/**
 * Sign-ins of people with MCP servers: the code flow with PKCE (S256), `state`, `iss` and `resource`. Tokens belong to a caller, a server and an
 * issuer; they are sealed in the store, and any process renews them.
 */
import * as oauth from 'oauth4webapi'
import { MillraceError } from '../../../part/error.ts'
import { isLoopback } from '../../../part/loopback.ts'
import { ownValue } from '../../../part/own-value.ts'
import type { RunUser } from '../../../part/principal.ts'
import { createSeal } from '../../../part/sealed-text.ts'
import { createCleaner } from '../../../fold/redact.ts'
import type { McpHttpServer, McpServer } from '../server.ts'
import type { PersonAuth } from './auth-config.ts'
import { bySecret, checkToken, rememberedServer, type AuthorizationServer } from './authorization-server.ts'
import type { CredentialsOptions } from './client-credentials.ts'
import { clientMetadata } from './client-metadata.ts'
import { createClientBook, type RegisteredClient } from './client-book.ts'
import { noToken } from './no-token.ts'
import { revokeTokens, type NotRevoked } from './revoke-tokens.ts'
import { SignInNeeded } from './sign-in-needed.ts'
import { openTokenBook, type BookOptions, type KeptTokens, type TokenBook, type Version } from './token-book.ts'
import { createTokenSource, type IssuedToken, type TokenSource } from './token-source.ts'
import { unauthorized } from './unauthorized.ts'

/** Whose tokens: of everybody who belongs to no one, if absent. */
export type Caller = Pick<RunUser, 'id' | 'tenant'> | undefined

/** What the caller's browser or terminal keeps while a person is away at the authorization server. It has secrets: seal it. */
export interface Flow {
  server: string
  caller: { id: string; tenant: string }
  issuer: string
  client: RegisteredClient
  redirectUri: string
  state: string
  verifier: string
  /** Epoch ms. */
  at: number
}

export interface SignInOptions {
  server: string
  caller: Caller
  /** Where the authorization server sends the person back to. */
  redirectUri: string
  /** Where our metadata document is, if others can read it. */
  clientDocument?: string | undefined
}

export interface SignIns {
  source(server: string, caller: Caller): Promise<TokenSource>
  /** The address where the person goes. Rejects with `mcp-unauthorized`, and with `unknown-mcp-server` for one where nobody signs in. */
  begin(options: SignInOptions): Promise<{ address: string; flow: Flow }>
  /** `back`: where the person came back to. Rejects with `mcp-unauthorized`; `sign-in-declined` if the person has declined. */
  finish(flow: Flow, back: URL): Promise<void>
  /**
   * Forgets the tokens, for all processes; then the authorization server is asked to revoke them, if it can, for as long as the signal lets it. Resolves
   * with undefined if there was no sign-in.
   */
  signOut(server: string, caller: Caller, signal?: AbortSignal): Promise<SignedOut | undefined>
}

export interface SignedOut {
  /** Undefined: the authorization server has revoked the tokens. */
  notRevoked: NotRevoked | undefined
}

export type SignInsOptions = Pick<CredentialsOptions, 'environment' | 'fetch'> & Omit<BookOptions, 'seal'>

/** How long a person may take. */
export const longestSignInMs = 600_000
/** ms that a sign-out waits for the authorization server. */
const revokeMs = 10_000
/** Callers whose tokens are in memory. */
const mostKept = 1000

export function createSignIns(servers: ReadonlyMap<string, McpServer>, options: SignInsOptions): SignIns {
  const { log, now, environment, fetch } = options
  const seal = createSeal(log, 'mcp-tokens', { inbox: 'access:mcp-secret', longest: 100_000 })
  const clients = createClientBook({ log, seal, now })
  const finders = new Map<string, () => Promise<AuthorizationServer>>()
  const kept = new Map<string, { book: TokenBook; source: TokenSource }>()
  const whoOf = (server: string) => `The MCP server "${server}"`

  function settingsOf(server: string): { url: string; auth: PersonAuth; secret: string | undefined } {
    const { url, auth } = (servers.get(server) ?? {}) as Partial<McpHttpServer>
    if (url === undefined || auth === undefined || !('person' in auth)) {
      throw unauthorized(whoOf(server), 'nobody can sign in to it; its auth in the config has no person')
    }
    const { secretEnv } = auth
    const secret = secretEnv === undefined ? undefined : ownValue(environment, secretEnv)?.trim()
    if (secretEnv !== undefined && !secret) {
      const why = 'an environment variable named in its auth is not set'
      throw unauthorized(whoOf(server), why, `not set: ${secretEnv}`)
    }
    return { url, auth, secret }
  }

  function find(server: string): Promise<AuthorizationServer> {
    let finder = finders.get(server)
    if (finder === undefined) {
      const { url, auth } = settingsOf(server)
      const isTrusted = auth.secretEnv !== undefined
      const { issuer } = auth
      finders.set(server, (finder = rememberedServer({ who: whoOf(server), url, issuer, isTrusted, fetch }, now)))
    }
    return finder()
  }

  const clientOf = ({ clientId }: { clientId: string }): oauth.Client => ({
    client_id: clientId,
    [oauth.clockTolerance]: 60,
    [oauth.clockSkew]: Math.round((now() - Date.now()) / 1000),
  })
  const authOf = (server: oauth.AuthorizationServer, { clientSecret }: { clientSecret?: string }) =>
    clientSecret === undefined ? oauth.None() : bySecret(server, clientSecret)

  async function clientFor(
    { metadata, http }: AuthorizationServer,
    { server, redirectUri, clientDocument }: SignInOptions,
  ): Promise<RegisteredClient> {
    const { auth, secret } = settingsOf(server)
    if (auth.clientId !== undefined) return { clientId: auth.clientId, ...(secret && { clientSecret: secret }) }
    if (clientDocument !== undefined && metadata['client_id_metadata_document_supported'] === true) {
      return { clientId: clientDocument }
    }
    if (metadata.registration_endpoint === undefined) {
      throw unauthorized(whoOf(server), 'its authorization server registers no clients. Set clientId in its auth')
    }
    return clients.client(metadata.issuer, redirectUri, async () => {
      const response = await oauth.dynamicClientRegistrationRequest(metadata, clientMetadata(redirectUri), http)
      return oauth.processDynamicClientRegistrationResponse(response)
    })
  }

  /** Rejects with `SignInNeeded` if there is nothing to renew with. */
  async function renewed(server: string, before: KeptTokens): Promise<KeptTokens | undefined> {
    const { refreshToken, issuer } = before
    const { metadata, http, resource } = await find(server)
    // Another authorization server must not get what this one has issued.
    if (refreshToken === undefined || metadata.issuer !== issuer) return undefined
    const asked = now()
    try {
      const client = clientOf(before)
      const more = { ...http, additionalParameters: { resource } }
      const auth = authOf(metadata, before)
      const response = await oauth.refreshTokenGrantRequest(metadata, client, auth, refreshToken, more)
      const answer = await oauth.processRefreshTokenResponse(metadata, client, response)
      // It may keep the token that got this one.
      return {
        issuer,
        ...pick(before),
        ...keptOf({ ...answer, refresh_token: answer.refresh_token ?? refreshToken }, asked),
      }
    } catch (error) {
      const isOver =
        error instanceof oauth.ResponseBodyError && ['invalid_grant', 'invalid_client'].includes(error.error)
      if (isOver) return undefined
      throw noToken(whoOf(server), error, createCleaner([refreshToken, before.token, before.clientSecret ?? '']))
    }
  }

  async function revoke(server: string, found: KeptTokens, signal: AbortSignal): Promise<SignedOut> {
    const finding = async () => {
      const { metadata, http } = await find(server)
      return { metadata, http, client: clientOf(found), auth: authOf(metadata, found) }
    }
    return { notRevoked: await revokeTokens(finding, found, signal) }
  }

  async function open(server: string, caller: Caller): Promise<{ book: TokenBook; source: TokenSource }> {
    const { url } = settingsOf(server)
    const name = await nameOf([caller?.tenant ?? '', caller?.id ?? '', server, url])
    const known = kept.get(name)
    // The one that was used last is forgotten last.
    kept.delete(name)
    const opened = known ?? newSource()
    kept.set(name, opened)
    if (kept.size > mostKept) kept.delete(kept.keys().next().value!)
    return opened

    function newSource() {
      const book = openTokenBook(name, { log, seal, now })
      let used: Version | undefined
      const isLatest = async () => used === undefined || book.isLatest(used)
      const source = createTokenSource(
        async (refused) => {
          const version = await book.latest()
          used = version
          const { kept: found } = version ?? {}
          if (version === undefined || found === undefined) throw new SignInNeeded(server)
          if (found.token !== refused && now() < (found.renewAt ?? Infinity)) return issuedOf(found)
          let made: KeptTokens | undefined
          const next = await book.renew(version, async (before) => (made = await renewed(server, before)))
          used = next
          if (next.kept !== undefined) return issuedOf(next.kept)
          // The person has signed out meanwhile.
          if (made !== undefined) void revoke(server, made, AbortSignal.timeout(revokeMs))
          throw new SignInNeeded(server)
        },
        now,
        isLatest,
      )
      return { book, source }
    }
  }

  return {
    source: async (server, caller) => (await open(server, caller)).source,

    async begin(asked) {
      const { server, caller, redirectUri } = asked
      const { auth } = settingsOf(server)
      try {
        const found = await find(server)
        const { metadata, resource } = found
        const address = URL.parse(metadata.authorization_endpoint ?? '')
        const isWeb = address?.protocol === 'https:' || (address?.protocol === 'http:' && isLoopback(address.hostname))
        if (address === null || !isWeb) {
          throw unauthorized(whoOf(server), 'its authorization server has no page where people sign in')
        }
        if (metadata.code_challenge_methods_supported?.includes('S256') !== true) {
          throw unauthorized(whoOf(server), 'its authorization server does not support PKCE with S256')
        }
        const client = await clientFor(found, asked)
        const [state, verifier] = [oauth.generateRandomState(), oauth.generateRandomCodeVerifier()]
        const scope = scopeOf(auth.scope ?? found.scope, metadata)
        const parameters = {
          client_id: client.clientId,
          redirect_uri: redirectUri,
          response_type: 'code',
          state,
          resource,
          code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
          ...(scope !== undefined && { scope }),
          // Some servers give a token that lasts only then.
          ...(scope?.split(' ').includes('offline_access') === true && { prompt: 'consent' }),
        }
        for (const [name, value] of Object.entries(parameters)) address.searchParams.set(name, value)
        const of = { id: caller?.id ?? '', tenant: caller?.tenant ?? '' }
        const flow = { server, caller: of, issuer: metadata.issuer, client, redirectUri, state, verifier, at: now() }
        return { address: address.href, flow }
      } catch (error) {
        throw noToken(whoOf(server), error, (text) => text)
      }
    },

    async finish({ server, caller, issuer, client: registered, redirectUri, state, verifier, at }, back) {
      const who = whoOf(server)
      if (now() - at > longestSignInMs) throw unauthorized(who, 'the sign-in has taken too long')
      try {
        const { metadata, resource, http } = await find(server)
        if (metadata.issuer !== issuer)
          throw unauthorized(who, 'its authorization server has changed during the sign-in')
        const client = clientOf(registered)
        const given = oauth.validateAuthResponse(metadata, client, back, state)
        const asked = now()
        const more = { ...http, additionalParameters: { resource } }
        const auth = authOf(metadata, registered)
        const response = await oauth.authorizationCodeGrantRequest(
          metadata,
          client,
          auth,
          given,
          redirectUri,
          verifier,
          more,
        )
        const answer = await oauth.processAuthorizationCodeResponse(metadata, client, response)
        const tokens = keptOf(answer, asked)
        const { book } = await open(server, caller.id === '' ? undefined : personOf(caller))
        await book.replace({ ...tokens, issuer, ...registered })
      } catch (error) {
        if (error instanceof oauth.AuthorizationResponseError && error.error === 'access_denied') throw declined(server)
        if (error instanceof oauth.ResponseBodyError && error.error === 'invalid_client') {
          await clients.forget(issuer, redirectUri)
        }
        throw noToken(who, error, createCleaner([verifier, registered.clientSecret ?? '']))
      }
    },

    async signOut(server, caller, signal = AbortSignal.timeout(revokeMs)) {
      const { book } = await open(server, caller)
      const found = (await book.latest())?.kept
      if (found === undefined) return undefined
      await book.replace(undefined)
      kept.clear()
      return revoke(server, found, signal)
    },
  }
}

function declined(server: string): MillraceError {
  return new MillraceError('sign-in-declined', `The sign-in to the MCP server "${server}" was declined.`)
}

const personOf = ({ id, tenant }: Flow['caller']) => ({ id, ...(tenant !== '' && { tenant }) })

/** With what a token that gets the next one needs, where there is such a scope. */
function scopeOf(scope: string | undefined, { scopes_supported: supported }: oauth.AuthorizationServer) {
  const wanted = scope?.split(/\s+/u) ?? []
  if (supported?.includes('offline_access') === true && !wanted.includes('offline_access'))
    wanted.push('offline_access')
  return wanted.length === 0 ? undefined : wanted.join(' ')
}

function pick({ clientId, clientSecret }: KeptTokens): RegisteredClient {
  return { clientId, ...(clientSecret !== undefined && { clientSecret }) }
}

function keptOf(
  answer: oauth.TokenEndpointResponse,
  asked: number,
): Pick<KeptTokens, 'token' | 'renewAt' | 'endsAt' | 'refreshToken'> {
  const { token, renewAt, endsAt } = checkToken(answer, asked)
  const { refresh_token: refreshToken } = answer
  // What cannot be renewed counts to its end.
  const ends = Number.isFinite(endsAt) ? { renewAt: refreshToken === undefined ? endsAt : renewAt, endsAt } : undefined
  return { token, ...ends, ...(refreshToken !== undefined && { refreshToken }) }
}

function issuedOf({ token, renewAt = Infinity, endsAt = Infinity }: KeptTokens): IssuedToken {
  return { token, renewAt, endsAt }
}

/** A name that says nothing of the person. */
async function nameOf(parts: readonly string[]): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify(parts))
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
