/**
 * `fetch` for the provider packages. They send a string and read a stream. Most of what Node's `fetch` does beyond that (a
 * `Request` and its copies, a generator for the body, a byte stream for the response) is for browsers, and it costs more time
 * before the first delta than all of our own code.
 *
 * So requests go directly to undici's global dispatcher, as Node's `fetch` would send them: with its connections, its proxies,
 * and any replacement that the process has installed. The platform's `fetch` is used if there is no dispatcher (Bun, Deno),
 * if the process has replaced `fetch`, and for any other kind of request.
 *
 * Not the package `undici`: 2.3 MB, a tenth of a second to load before the first request, and a dispatcher of its own instead of the
 * process's. Its `fetch` with a dispatcher, like Node's, takes two to three times the CPU time of this file.
 */

import { boundResponse } from './outside/bounded-response.ts'
import { createByteMeter, type ByteMeter, type MeterOptions } from './outside/byte-meter.ts'
import { defaultReadLimits, type ReadLimits } from './outside/read-limits.ts'
import { fetchWithinOrigin } from './outside/within-origin.ts'
import { decodingsOf, listOf, toHeaders, toResponse } from './http-message.ts'

/** undici's dispatcher interface, as Node's `fetch` uses it. */
interface Dispatcher {
  dispatch(request: DispatchedRequest, handler: DispatchHandler): unknown
}

interface DispatchedRequest {
  origin: string
  path: string
  method: string
  /** Names and values, alternating. */
  headers: string[]
  body: string
  /** ms; 0 means none. */
  headersTimeout: number
  bodyTimeout: number
}

interface DispatchHandler {
  onConnect(abort: (reason?: unknown) => void): void
  onHeaders(status: number, headers: Buffer[], resume: () => void, statusText: string): boolean
  /** Returns `false` to pause until `resume` is called. */
  onData(bytes: Uint8Array): boolean
  onComplete(): void
  onError(error: unknown): void
}

/** The key that undici uses, both inside Node and as a package. */
const globalDispatcher = Symbol.for('undici.globalDispatcher.1')

export interface ProviderFetchOptions {
  /** Subject of error messages: `openai:gpt-5`. */
  who: string
  limits?: ReadLimits
}

/** Like `fetch`, but the call or the body may also fail with `redirect-refused`, `line-too-long` or `body-too-large`. */
export function createProviderFetch({ who, limits = defaultReadLimits }: ProviderFetchOptions): typeof fetch {
  const bounds = { who, limits }
  return async (input, init = {}) => {
    const url = typeof input === 'string' || input instanceof URL ? String(input) : input.url
    const given = typeof input === 'string' || input instanceof URL ? init : { ...partsOf(input), ...init }
    return fetchWithinOrigin((at, request) => send(at, request, bounds), url, given, who)
  }
}

function partsOf({ method, headers, body, signal }: Request): RequestInit {
  // A stream body needs `duplex`, which is missing from the types.
  return { method, headers, signal, ...(body === null ? undefined : { body, duplex: 'half' }) } as RequestInit
}

async function send(at: string, init: RequestInit, bounds: Bounds): Promise<Response> {
  const dispatcher = isNodesOwn(globalThis.fetch) ? findDispatcher() : undefined
  const { method = 'GET', headers, body, signal, redirect: _, ...rest } = init
  const url = new URL(at)
  const isPlain = typeof body === 'string' && Object.keys(rest).length === 0
  // `fetch` rejects credentials in the URL with a clear error.
  if (dispatcher === undefined || !isPlain || url.username !== '' || url.password !== '') {
    const response = await globalThis.fetch(at, init)
    return boundResponse(response, { ...bounds, shape: shapeOf(response.headers) })
  }
  signal?.throwIfAborted()
  const request = {
    origin: url.origin,
    path: url.pathname + url.search,
    method,
    headers: listOf(headers),
    body,
    ...unlimited,
  }
  return ask(dispatcher, request, signal ?? undefined, bounds)
}

type Bounds = Required<ProviderFetchOptions>

function shapeOf(headers: Headers): MeterOptions['shape'] {
  return headers.get('content-type')?.includes('json') === true ? 'document' : 'lines'
}

/** The run's `timeouts` limit how long a model may be silent. undici's default of five minutes would override longer limits. */
const unlimited = { headersTimeout: 0, bodyTimeout: 0 }

/** Bytes buffered for the reader before the connection is paused. */
const readAhead = 64 * 1024

/** Resolves with the response; a redirect has no body. */
function ask(
  dispatcher: Dispatcher,
  request: DispatchedRequest,
  signal: AbortSignal | undefined,
  bounds: Bounds,
): Promise<Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Response>()
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  let abort: ((reason?: unknown) => void) | undefined
  let over = false
  /** Only for unencoded bodies of successful responses. Others are bounded after decoding. */
  let meter: ByteMeter | undefined
  /** Whether the response has been delivered. From then on, errors go to its body. */
  let answered = false
  /** Data received in this turn: one socket read becomes one piece, however many HTTP chunks it contains. */
  let pieces: Uint8Array[] = []
  let bytesWaiting = 0

  function deliver(): void {
    if (over || pieces.length === 0) return
    controller!.enqueue(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, bytesWaiting))
    pieces = []
    bytesWaiting = 0
  }

  function fail(error: unknown): void {
    if (over) return
    detach()
    if (answered) controller!.error(error)
    else reject(error)
  }
  function detach(): void {
    over = true
    signal?.removeEventListener('abort', stop)
  }
  function stop(): void {
    fail(signal?.reason)
    abort?.(signal?.reason)
  }

  signal?.addEventListener('abort', stop)
  const handler: DispatchHandler = {
    onConnect(cut) {
      abort = cut
      if (over) cut(signal?.reason)
    },
    onHeaders(status, headers, resume, statusText) {
      if (status < 200) return true
      let names: Headers
      try {
        names = toHeaders(headers)
      } catch (error) {
        fail(new TypeError('fetch failed', { cause: error }))
        abort?.(error)
        return true
      }
      if (status >= 300 && status < 400 && names.has('location')) {
        detach()
        resolve(new Response(null, { status, headers: names }))
        abort?.()
        return true
      }
      const body = new ReadableStream<Uint8Array>(
        {
          start: (made) => void (controller = made),
          pull: resume,
          cancel(reason) {
            detach()
            abort?.(reason)
          },
        },
        new ByteLengthQueuingStrategy({ highWaterMark: readAhead }),
      )
      try {
        const metering = { ...bounds, shape: shapeOf(names) }
        const isPlain = status < 400 && decodingsOf(names).length === 0
        if (isPlain) meter = createByteMeter(metering)
        const response = toResponse(status, statusText, names, body)
        resolve(isPlain ? response : boundResponse(response, metering))
        answered = true
      } catch (error) {
        // `Response` rejected the status.
        fail(new TypeError('fetch failed', { cause: error }))
        abort?.(error)
      }
      return true
    },
    onData(bytes) {
      if (over) return true
      try {
        meter?.(bytes)
      } catch (error) {
        deliver()
        fail(error)
        abort?.(error)
        return true
      }
      if (pieces.length === 0) queueMicrotask(deliver)
      pieces.push(bytes)
      bytesWaiting += bytes.length
      return controller!.desiredSize! > bytesWaiting
    },
    onComplete() {
      if (over) return
      deliver()
      detach()
      controller!.close()
    },
    // The provider packages recognise these messages of `fetch`.
    onError(cause) {
      if (answered) deliver()
      fail(new TypeError(answered ? 'terminated' : 'fetch failed', { cause }))
    },
  }
  try {
    dispatcher.dispatch(request, handler)
  } catch (error) {
    fail(error)
  }
  return promise
}

let known: { fetch: unknown; own: boolean } = { fetch: undefined, own: false }

/** Instrumentation, test tools and frameworks replace `fetch`. */
function isNodesOwn(fetch: unknown): boolean {
  if (known.fetch !== fetch) known = { fetch, own: String(fetch).includes("require('internal/deps/undici/undici')") }
  return known.own
}

function findDispatcher(): Dispatcher | undefined {
  // Node creates the dispatcher when an undici global is first accessed.
  void globalThis.Headers
  const found = (globalThis as { [globalDispatcher]?: Partial<Dispatcher> })[globalDispatcher]
  return typeof found?.dispatch === 'function' ? (found as Dispatcher) : undefined
}
