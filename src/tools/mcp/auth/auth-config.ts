/** The key `auth` of an MCP server in the config: how tokens for it are obtained. */
import { isLoopback } from '../../../part/loopback.ts'
import { isObject } from '../../../pipeline/json-schema/keywords.ts'

interface Common {
  /** Scopes, separated by spaces. */
  scope?: string
  /**
   * The authorization server. Default: the one that the MCP server names. A secret or a key of ours is sent to another origin than the server's
   * only if it stands here.
   */
  issuer?: string
}

/** Tokens of our own: nobody signs in. */
export interface ClientCredentials extends Common {
  clientId: string
  /** The environment variable with the client's secret. */
  secretEnv?: string
  /** The environment variable with the client's private key, as PKCS #8 in PEM or as a JWK: requests are signed with it. */
  privateKeyEnv?: string
  /** How they are signed. Default `RS256`. */
  algorithm?: SigningAlgorithm
  /** `kid` of the key. */
  keyId?: string
}

/** Each caller has its own tokens: a call asks its person to sign in. */
export interface PersonAuth extends Common {
  person: true
  /** As the authorization server knows us. Default: our metadata document, else we register. */
  clientId?: string
  /** The environment variable with the client's secret. Default: it has none. */
  secretEnv?: string
}

export type McpAuth = { clientCredentials: ClientCredentials } | PersonAuth

export const signingAlgorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const
export type SigningAlgorithm = (typeof signingAlgorithms)[number]

/** What is wrong with the key, as the rest of a sentence. Never quotes a value. */
export function authFault(url: string | undefined, headers: object | undefined, auth: unknown): string | undefined {
  if (auth === undefined) return undefined
  if (url === undefined) return 'auth is for servers with a url.'
  if (!isObject(auth)) return `auth must be ${kinds}.`
  const at = URL.parse(url)
  if (at?.protocol !== 'https:' && !isLoopback(at?.hostname ?? '')) {
    return 'auth needs an https:// url: tokens are not sent in clear text, except to this machine.'
  }
  if (Object.keys(headers ?? {}).some((name) => name.toLowerCase() === 'authorization')) {
    return 'set either auth or headers.authorization.'
  }
  if ('person' in auth) return personFault(auth)
  const { clientCredentials: given, ...others } = auth
  const [other] = Object.keys(others)
  if (other !== undefined) return `auth.${other} is not a known setting. auth is ${kinds}.`
  if (!isObject(given)) return `auth.clientCredentials must be an object: ${kinds}.`
  return credentialsFault(given)
}

const kinds = '{ clientCredentials: { clientId, secretEnv | privateKeyEnv, scope } } or { person: true, scope }'

function personFault(auth: Record<string, unknown>): string | undefined {
  const { person, ...given } = auth
  if (person !== true) return `auth.person must be true: ${kinds}.`
  const names = ['scope', 'issuer', 'clientId', 'secretEnv']
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined) continue
    if (!names.includes(key)) return `auth.${key} is not a known setting. Settings: person, ${names.join(', ')}.`
    if (typeof value !== 'string' || value.trim() === '') return `auth.${key} must be a text.`
  }
  if (given['secretEnv'] !== undefined && given['clientId'] === undefined) return 'auth.clientId is missing.'
  return issuerFault('auth', given['issuer'] as string | undefined)
}
const texts = ['clientId', 'secretEnv', 'privateKeyEnv', 'keyId', 'scope', 'issuer']

function credentialsFault(given: Record<string, unknown>): string | undefined {
  const place = 'auth.clientCredentials'
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined) continue
    if (key === 'algorithm') {
      if (!signingAlgorithms.some((each) => each === value)) {
        return `${place}.algorithm must be one of ${signingAlgorithms.join(', ')}.`
      }
    } else if (!texts.includes(key)) {
      return `${place}.${key} is not a known setting. Settings: ${[...texts, 'algorithm'].join(', ')}.`
    } else if (typeof value !== 'string' || value.trim() === '') return `${place}.${key} must be a text.`
  }
  const { clientId, secretEnv, privateKeyEnv, algorithm, keyId, issuer } = given
  if (clientId === undefined) return `${place}.clientId is missing.`
  if ((secretEnv === undefined) === (privateKeyEnv === undefined)) {
    return `${place} needs either secretEnv or privateKeyEnv, the name of an environment variable.`
  }
  if (secretEnv !== undefined && (algorithm ?? keyId) !== undefined) {
    return `${place}: algorithm and keyId belong to privateKeyEnv.`
  }
  return issuerFault(place, issuer as string | undefined)
}

function issuerFault(place: string, issuer: string | undefined): string | undefined {
  if (issuer === undefined) return undefined
  const url = URL.parse(issuer)
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))
  return isSafe && url.search === '' && url.hash === '' ? undefined : `${place}.issuer must be an https:// address.`
}
