/**
 * Tokens of OpenID providers as credentials: RS256, ES256 and EdDSA, of the issuers and audiences of the config. A verified token is remembered by its
 * SHA-256, so that a request costs a hash and not a signature check.
 */
import { decodeJwt, decodeProtectedHeader, errors, jwtVerify, type JWTPayload } from 'jose'
import type { Principal } from '../../part/principal.ts'
import type { JwtConfig } from '../../project/config.ts'
import { hashText } from '../http/key.ts'
import { createIssuerKeys, type IssuerKeys } from './issuer-keys.ts'
import { unauthorized } from './refusals.ts'
import { ClaimError, principalOfClaims } from './token-principal.ts'

export interface JwtCheck {
  /** Whether a credential looks like a JWT. */
  matches(token: string): boolean
  /** At once for a token that is known. Throws or rejects with `unauthorized` or `access-unavailable`. */
  identify(token: string): Principal | Promise<Principal>
  close(): void
}

export interface JwtCheckOptions {
  /** Epoch ms. */
  now: () => number
  fetch?: typeof fetch | undefined
  /** Why an issuer or a verified token cannot be used: for the operator. */
  report: (error: unknown) => void
  /** The claims that reach the principal. Default: none. */
  claims?: readonly string[] | undefined
}

const algorithms = ['RS256', 'ES256', 'EdDSA']
/** Longer tokens do not count. */
const largest = 8192
/** How far the issuer's clock may be from ours. */
const skewMs = 60_000
/** Maximum number of tokens that are remembered. */
const mostKept = 10_000

/** Several configs: a token belongs to those of its issuer, and the first whose audience it has counts. */
export function createJwtCheck(
  configs: JwtConfig | readonly JwtConfig[],
  { now, fetch, report, claims }: JwtCheckOptions,
): JwtCheck {
  const known = new Map<string, Principal>()
  const hash = createHash()
  let changes = 0
  const onChanged = () => {
    changes++
    known.clear()
  }
  const issuers = new Map<string, IssuerKeys>()
  const sources = [configs].flat().map((config: JwtConfig) => {
    // Several audiences of an issuer share its keys.
    const name = JSON.stringify([config.issuer, config.jwks])
    const keys = issuers.get(name) ?? createIssuerKeys({ ...config, now, fetch, report, onChanged })
    issuers.set(name, keys)
    return { config, keys }
  })

  function remembered(digest: string): Principal | undefined {
    const principal = known.get(digest)
    if (principal === undefined || principal.expiresAt! > now()) return principal
    known.delete(digest)
    return undefined
  }

  async function verify(token: string, digest: string): Promise<Principal> {
    let failure: unknown
    const issuer = issuerOf(token)
    const before = changes
    for (const { config, keys } of sources) {
      if (config.issuer !== issuer) continue
      try {
        const payload = await verifiedPayload(token, config, keys)
        const principal = { ...principalOfClaims(payload, config, claims), expiresAt: endOf(payload.exp!) }
        if (known.size >= mostKept) known.delete(known.keys().next().value!)
        // A key that was withdrawn meanwhile must not count on.
        if (changes === before) known.set(digest, principal)
        return principal
      } catch (error) {
        // The issuer has signed it, so the config does not fit the issuer. Another config with this audience must not be a way around it.
        if (error instanceof ClaimError) {
          report(new Error(`A token of ${issuer} was refused. ${error.message}`))
          throw unauthorized()
        }
        // What jose refuses may be for another audience of this issuer.
        if (!(error instanceof errors.JOSEError)) failure = error
      }
    }
    throw failure ?? unauthorized()
  }

  async function verifiedPayload(token: string, config: JwtConfig, keys: IssuerKeys): Promise<JWTPayload> {
    const header = decodeProtectedHeader(token)
    const candidates = algorithms.includes(header.alg ?? '') ? await keys.find(header) : []
    const { issuer, audience } = config
    const clockTolerance = skewMs / 1000
    const currentDate = new Date(now())
    let failure: unknown = new errors.JWKSNoMatchingKey()
    for (const key of candidates) {
      try {
        const options = { issuer, audience, algorithms, clockTolerance, requiredClaims: ['exp'], currentDate }
        return (await jwtVerify(token, key, options)).payload
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }

  /** A token that is accepted after its end, within the skew, counts to the end of the skew. */
  function endOf(exp: number): number {
    return exp * 1000 > now() ? exp * 1000 : exp * 1000 + skewMs
  }

  return {
    matches: (token) => /^eyJ[\w-]*\.[\w-]*\.[\w-]*$/u.test(token),
    identify(token) {
      if (token.length >= largest) throw unauthorized()
      for (const keys of issuers.values()) keys.refresh()
      const digest = hash?.(token)
      if (digest !== undefined) return remembered(digest) ?? verify(token, digest)
      return hashText(token).then((slow) => remembered(slow) ?? verify(token, slow))
    },
    close: () => known.clear(),
  }
}

/** Not verified: it only says whose keys to try. */
function issuerOf(token: string): string | undefined {
  try {
    return decodeJwt(token).iss
  } catch {
    return undefined
  }
}

/** Web Crypto hashes on another thread, and every request would wait for it. Undefined without Node. */
function createHash(): ((text: string) => string) | undefined {
  const node = globalThis.process?.getBuiltinModule?.('node:crypto')
  return node && ((text) => node.hash('sha256', text, 'base64'))
}
