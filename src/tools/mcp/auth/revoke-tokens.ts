/** Asks an authorization server to revoke the tokens of a sign-in that has ended (RFC 7009). */
import * as oauth from 'oauth4webapi'
import { createCleaner } from '../../../fold/redact.ts'
import { MillraceError } from '../../../part/error.ts'
import type { AuthorizationServer } from './authorization-server.ts'
import { whyNoToken } from './no-token.ts'
import type { KeptTokens } from './token-book.ts'

/** Why tokens count until they end: what the authorization server did. */
export interface NotRevoked {
  why: string
  /** For the terminal and the log only. */
  detail?: string | undefined
}

interface Found extends Pick<AuthorizationServer, 'metadata' | 'http'> {
  client: oauth.Client
  auth: oauth.ClientAuth
}

/** Resolves when they are revoked, with undefined; else with why they are not, and that as soon as the signal aborts. */
export async function revokeTokens(
  find: () => Promise<Found>,
  { token, refreshToken, issuer, clientSecret = '' }: KeptTokens,
  signal: AbortSignal,
): Promise<NotRevoked | undefined> {
  const late = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error)
    signal.addEventListener('abort', () => reject(signal.reason as Error))
  })
  try {
    return await Promise.race([revoke(), late])
  } catch (error) {
    if (error instanceof MillraceError) return { why: 'was not found', detail: error.message }
    const [why, detail] = whyNoToken(error, createCleaner([refreshToken ?? '', token, clientSecret]))
    return { why, detail }
  }

  async function revoke(): Promise<NotRevoked | undefined> {
    const { metadata, http, client, auth } = await find()
    if (metadata.issuer !== issuer) return { why: 'is no longer that of the server' }
    if (metadata.revocation_endpoint === undefined) return { why: 'revokes no tokens' }
    const ask = async (hint: string, given: string) => {
      const more = { ...http, signal, additionalParameters: { token_type_hint: hint } }
      const response = await oauth.revocationRequest(metadata, client, auth, given, more)
      await oauth.processRevocationResponse(response)
    }
    if (refreshToken !== undefined) await ask('refresh_token', refreshToken)
    try {
      await ask('access_token', token)
    } catch (error) {
      const keepsNone = error instanceof oauth.ResponseBodyError && error.error === 'unsupported_token_type'
      // It was issued for the refresh token, and counts for a short time.
      if (!keepsNone || refreshToken === undefined) throw error
    }
    return undefined
  }
}
