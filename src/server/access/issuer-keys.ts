/** The public keys of an issuer, from its JWKS: fetched when first needed, kept while the issuer is away. */
import { createLocalJWKSet, errors, type CryptoKey, type JWSHeaderParameters, type JSONWebKeySet } from 'jose'
import { MillraceError } from '../../part/error.ts'
import { parseJson } from '../../part/json.ts'
import { ownValue } from '../../part/own-value.ts'
import { accessUnavailable } from './refusals.ts'

export interface IssuerKeysOptions {
  issuer: string
  /** Default: as the issuer's discovery says. */
  jwks?: string | undefined
  /** Epoch ms. */
  now: () => number
  fetch?: typeof fetch | undefined
  report: (error: unknown) => void
  /** The keys are others than before: what was verified with them must be verified again. */
  onChanged?: () => void
}

export interface IssuerKeys {
  /**
   * The keys that a token may be signed with. Empty: none. Rejects with `access-unavailable` while the issuer was never reached.
   */
  find(header: JWSHeaderParameters): Promise<CryptoKey[]>
  /** Fetches the keys anew in the background if they are old. */
  refresh(): void
}

/** An unknown key id makes the keys be fetched again, at most this often. */
const cooldownMs = 60_000
/** Keys are fetched again after this: the issuer may have withdrawn one. */
const oldMs = 600_000
/** An issuer that was never reached is asked again after this. */
const retryMs = 5000
const timeoutMs = 5000
/** The largest response in bytes. Issuers have a few keys. */
const largest = 1_000_000

export function createIssuerKeys({ issuer, jwks, now, report, onChanged, ...options }: IssuerKeysOptions): IssuerKeys {
  const { fetch: request = fetch } = options
  let keys: ReturnType<typeof createLocalJWKSet> | undefined
  let text = ''
  let triedAt = -Infinity
  let fetchedAt = -Infinity
  let refetchedAt = -Infinity
  let loading: Promise<void> | undefined

  /** One at a time. Never rejects. */
  function load(): Promise<void> {
    triedAt = now()
    return (loading ??= fetchKeys()
      .catch((error: unknown) => report(unreachable(issuer, error)))
      .finally(() => (loading = undefined)))
  }

  async function fetchKeys(): Promise<void> {
    const found = await read(jwks ?? (await discover()))
    const set = createLocalJWKSet(parseJson(found) as JSONWebKeySet)
    if (found !== text && text !== '') onChanged?.()
    ;[keys, text, fetchedAt] = [set, found, now()]
  }

  async function discover(): Promise<string> {
    const found = parseJson(await read(discoveryUrl(issuer)))
    const of = (name: string) =>
      typeof found === 'object' && found !== null ? ownValue(found as Record<string, unknown>, name) : undefined
    if (of('issuer') !== issuer) throw new Error(`Its discovery names another issuer than ${issuer}.`)
    const address = of('jwks_uri')
    if (typeof address !== 'string' || !URL.canParse(address)) throw new Error('Its discovery has no jwks_uri.')
    if (new URL(address).protocol !== 'https:' && new URL(issuer).protocol === 'https:') {
      throw new Error('Its discovery has a jwks_uri without https.')
    }
    return address
  }

  async function read(url: string): Promise<string> {
    const signal = AbortSignal.timeout(timeoutMs)
    // A redirect would let another server say whose tokens count.
    const response = await request(url, { signal, redirect: 'error', headers: { accept: 'application/json' } })
    if (!response.ok) {
      // Not awaited: as long as it does not settle, the keys would not be fetched again.
      response.body?.cancel().catch(() => undefined)
      throw new Error(`${url} answered ${response.status}.`)
    }
    const pieces: Uint8Array[] = []
    let size = 0
    for await (const piece of response.body ?? []) {
      size += piece.length
      if (size > largest) throw new Error(`${url} answered more than ${largest} bytes.`)
      pieces.push(piece)
    }
    return new TextDecoder().decode(await new Blob(pieces as Uint8Array<ArrayBuffer>[]).arrayBuffer())
  }

  async function pick(header: JWSHeaderParameters): Promise<CryptoKey[]> {
    try {
      return [await keys!(header)]
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) return []
      // Without a key id, each may be the one.
      const found: CryptoKey[] = []
      for await (const key of error) found.push(key)
      return found
    }
  }

  return {
    async find(header) {
      if (keys === undefined && (loading !== undefined || now() - triedAt >= retryMs)) await load()
      if (keys === undefined) throw accessUnavailable()
      const found = await pick(header)
      if (found.length > 0) return found
      if (loading === undefined && now() - refetchedAt < cooldownMs) return []
      if (loading === undefined) refetchedAt = now()
      await load()
      return pick(header)
    },
    refresh() {
      if (keys === undefined || loading !== undefined) return
      if (now() - fetchedAt >= oldMs && now() - triedAt >= cooldownMs) void load()
    },
  }
}

function discoveryUrl(issuer: string): string {
  return `${issuer.replace(/\/$/u, '')}/.well-known/openid-configuration`
}

function unreachable(issuer: string, cause: unknown): MillraceError {
  return new MillraceError('access-unavailable', `The keys of the issuer ${issuer} cannot be fetched.`, {
    status: 503,
    detail: whyOf(cause),
    cause,
  })
}

/** The cause of a `fetch failed` says what failed. */
function whyOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message
}
