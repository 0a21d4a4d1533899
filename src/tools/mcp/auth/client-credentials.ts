/** Tokens of our own for an MCP server (client credentials), with a secret or with requests signed by a private key (RFC 7523). */
import { importJWK, importPKCS8 } from 'jose'
import * as oauth from 'oauth4webapi'
import { createCleaner } from '../../../fold/redact.ts'
import { parseJson } from '../../../part/json.ts'
import { ownValue } from '../../../part/own-value.ts'
import type { ClientCredentials } from './auth-config.ts'
import { bySecret, checkToken, rememberedServer } from './authorization-server.ts'
import type { Fetch } from './authorized-fetch.ts'
import { noToken } from './no-token.ts'
import { createTokenSource, type TokenSource } from './token-source.ts'
import { unauthorized } from './unauthorized.ts'

export interface CredentialsOptions {
  /** The MCP server by its name, for messages. */
  who: string
  url: string
  /** Has the variables of the config. */
  environment: Readonly<Record<string, string | undefined>>
  /** Epoch ms. */
  now: () => number
  fetch?: Fetch | undefined
}

export function createClientCredentials(config: ClientCredentials, options: CredentialsOptions): TokenSource {
  const { who, url, environment, now, fetch } = options
  const { clientId, secretEnv, privateKeyEnv, algorithm = 'RS256', keyId, scope, issuer } = config
  const find = rememberedServer({ who, url, issuer, isTrusted: true, fetch }, now)
  const variable = secretEnv ?? privateKeyEnv!

  /** Read each time: a program may have set it meanwhile. */
  function secret(): string {
    const value = ownValue(environment, variable)?.trim()
    if (value) return value
    throw unauthorized(who, 'an environment variable named in its auth is not set', `not set: ${variable}`)
  }

  async function authOf(server: oauth.AuthorizationServer, value: string): Promise<oauth.ClientAuth> {
    if (secretEnv === undefined) {
      const key = await privateKeyOf(value, algorithm).catch(() => {
        throw unauthorized(who, `its private key is no ${algorithm} key, as PKCS #8 in PEM or as a JWK`)
      })
      return oauth.PrivateKeyJwt({ key, ...(keyId !== undefined && { kid: keyId }) })
    }
    return bySecret(server, value)
  }

  async function request() {
    const value = secret()
    try {
      const { metadata, resource, http } = await find()
      const client = { client_id: clientId, [oauth.clockSkew]: Math.round((now() - Date.now()) / 1000) }
      const auth = await authOf(metadata, value)
      const wanted = { resource, ...(scope !== undefined && { scope }) }
      const asked = now()
      const response = await oauth.clientCredentialsGrantRequest(metadata, client, auth, wanted, http)
      return checkToken(await oauth.processClientCredentialsResponse(metadata, client, response), asked)
    } catch (error) {
      throw noToken(who, error, createCleaner([value]))
    }
  }

  return createTokenSource(request, now)
}

async function privateKeyOf(text: string, algorithm: string): Promise<CryptoKey> {
  const key = text.startsWith('{')
    ? await importJWK(parseJson(text) as object, algorithm)
    : // Files of variables have it in one line.
      await importPKCS8(text.replaceAll(String.raw`\n`, '\n'), algorithm)
  if (key instanceof Uint8Array) throw new TypeError('a shared key')
  return key
}
