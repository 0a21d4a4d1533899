/**
 * `fetch` for the provider packages. They send a string and read a stream. Most of what Node's `fetch` does beyond that (a
 * `Request` and its copies, a generator for the body, a byte stream for the response) is for browsers, and it costs more time
 * before the first delta than all of our own code.
 *
 * So requests go directly to undici's dispatcher (`http/dispatcher.ts`), as Node's `fetch` would send them: with its proxies, and any
 * replacement that the process has installed. The platform's `fetch` is used if there is no dispatcher (Bun, Deno),
 * if the process has replaced `fetch`, and for any other kind of request.
 *
 * Not the package `undici`: 2.3 MB, a tenth of a second to load before the first request, and a dispatcher of its own instead of the
 * process's. Its `fetch` with a dispatcher, like Node's, takes two to three times the CPU time of this file.
 */

import { boundResponse } from './limits/bounded-response.ts'
import type { MeterOptions } from './limits/byte-meter.ts'
import { defaultReadLimits, type ReadLimits } from './limits/read-limits.ts'
import { discardBody, fetchWithinOrigin } from './limits/within-origin.ts'
import { dispatch, type Dispatched } from './http/dispatch.ts'
import { findDispatcher } from './http/dispatcher.ts'
import { listOf, toResponse } from './http/http-message.ts'
import { fromStream, toStream, type PushBody } from './http/push-body.ts'

export interface ProviderFetchOptions {
  /** Subject of error messages: `openai:gpt-5`. */
  who: string
  limits?: ReadLimits
}

/** A response whose body can be read in two ways. Use one of them, once. */
export interface Opened {
  status: number
  headers: Headers
  /** As of a `Response`: `opaqueredirect` hides the status. */
  type?: string
  /** The body's bytes, decoded and limited. Only for a successful response. */
  body(): PushBody
  /** The `Response` for `fetch`. Throws a `TypeError` if no `Response` can have this status. */
  toResponse(): Response
}

/** Like `fetch`, but the call or the body may also fail with `redirect-refused`, `line-too-long` or `body-too-large`. */
export type Open = (input: Parameters<typeof fetch>[0], init?: RequestInit) => Promise<Opened>

export function createProviderFetch(options: ProviderFetchOptions): typeof fetch {
  const open = createProviderOpen(options)
  return async (input, init) => (await open(input, init)).toResponse()
}

export function createProviderOpen({ who, limits = defaultReadLimits }: ProviderFetchOptions): Open {
  const meteringOf: MeteringOf = (headers) => ({ who, limits, shape: shapeOf(headers) })
  const ask = (at: string, request: RequestInit) => send(at, request, meteringOf)
  return async (input, init = {}) => {
    const url = typeof input === 'string' || input instanceof URL ? String(input) : input.url
    const given = typeof input === 'string' || input instanceof URL ? init : { ...partsOf(input), ...init }
    return fetchWithinOrigin(ask, discard, url, given, who)
  }
}

function discard(redirect: Opened): void {
  discardBody(redirect.toResponse())
}

function partsOf({ method, headers, body, signal }: Request): RequestInit {
  // A stream body needs `duplex`, which is missing from the types.
  return { method, headers, signal, ...(body === null ? undefined : { body, duplex: 'half' }) } as RequestInit
}

/** The limits on the size of a response's body. */
type MeteringOf = (headers: Headers) => MeterOptions

async function send(at: string, init: RequestInit, meteringOf: MeteringOf): Promise<Opened> {
  const dispatcher = isNodesOwn(globalThis.fetch) ? findDispatcher() : undefined
  const { method = 'GET', headers, body, signal, redirect: _, ...rest } = init
  const address = addressOf(at)
  const isPlain = typeof body === 'string' && Object.keys(rest).length === 0
  // `fetch` rejects credentials in the URL with a clear error.
  if (dispatcher === undefined || !isPlain || address.hasCredentials) {
    const response = await globalThis.fetch(at, init)
    return ofResponse(boundResponse(response, meteringOf(response.headers)), response.type)
  }
  signal?.throwIfAborted()
  const request = {
    origin: address.origin,
    path: address.path,
    method,
    headers: listOf(headers),
    body,
    ...unlimited,
  }
  return new OpenedByUs(await dispatch(dispatcher, request, signal ?? undefined, meteringOf), meteringOf)
}

interface Address {
  origin: string
  path: string
  hasCredentials: boolean
}

function addressOf(url: string): Address {
  const { origin, pathname, search, username, password } = new URL(url)
  return { origin, path: pathname + search, hasCredentials: username !== '' || password !== '' }
}

/** A class, not closures: one for each open stream (decisions/0028). */
class OpenedByUs implements Opened {
  readonly status: number
  readonly headers: Headers
  readonly #statusText: string
  readonly #body: PushBody | undefined
  readonly #isBounded: boolean
  readonly #meteringOf: MeteringOf

  constructor({ status, statusText, headers, body, isBounded }: Dispatched, meteringOf: MeteringOf) {
    this.status = status
    this.headers = headers
    this.#statusText = statusText
    this.#body = body
    this.#isBounded = isBounded
    this.#meteringOf = meteringOf
  }

  body(): PushBody {
    return this.#isBounded && this.#body !== undefined ? this.#body : fromStream(bodyOf(this.toResponse()))
  }

  toResponse(): Response {
    const { status, headers } = this
    if (this.#body === undefined) return new Response(null, { status, headers })
    try {
      const made = toResponse(status, this.#statusText, headers, toStream(this.#body))
      return this.#isBounded ? made : boundResponse(made, this.#meteringOf(headers))
    } catch (error) {
      // `Response` rejected the status.
      this.#body.cancel(error)
      throw new TypeError('fetch failed', { cause: error })
    }
  }
}

function ofResponse(response: Response, type: string): Opened {
  const { status, headers } = response
  return { status, headers, type, body: () => fromStream(bodyOf(response)), toResponse: () => response }
}

function bodyOf({ body }: Response): ReadableStream<Uint8Array> {
  return body ?? new ReadableStream({ start: (controller) => controller.close() })
}

function shapeOf(headers: Headers): MeterOptions['shape'] {
  return headers.get('content-type')?.includes('json') === true ? 'document' : 'lines'
}

/** The run's `timeouts` limit the silence of a model. undici's default of five minutes would override longer limits. */
const unlimited = { headersTimeout: 0, bodyTimeout: 0 }

let known: { fetch: unknown; own: boolean } = { fetch: undefined, own: false }

/** Instrumentation, test tools and frameworks replace `fetch`. */
function isNodesOwn(fetch: unknown): boolean {
  if (known.fetch !== fetch) known = { fetch, own: String(fetch).includes("require('internal/deps/undici/undici')") }
  return known.own
}
