/**
 * `fetch` for the provider packages. They send a text and read a stream; most of what Node's own `fetch` does besides (a
 * `Request` and its copies, a generator for the body, a byte stream for the answer) is for browsers, and on the way to the
 * first delta it costs more than all of our own work.
 *
 * So the request is handed to what Node's `fetch` would hand it to: undici's global dispatcher, with its connections, its
 * proxies, and whatever the process has put in its place. Where there is none (Bun, Deno), where somebody has
 * put another `fetch` into the process, and for any request that is not of this kind, the platform's `fetch` is asked.
 */

import { boundResponse } from '../outside/bounded-response.ts'
import { createByteMeter, type ByteMeter, type MeterOptions } from '../outside/byte-meter.ts'
import { defaultReadLimits, type ReadLimits } from '../outside/read-limits.ts'
import { fetchWithinOrigin } from '../outside/within-origin.ts'
import { decodingsOf, listOf, toHeaders, toResponse } from './http-message.ts'

/** undici's interface of a dispatcher, as Node's `fetch` uses it. */
interface Dispatcher {
  dispatch(request: DispatchedRequest, handler: DispatchHandler): unknown
}

interface DispatchedRequest {
  origin: string
  path: string
  method: string
  /** Names and values in turn. */
  headers: string[]
  body: string
  /** ms; 0 means none. */
  headersTimeout: number
  bodyTimeout: number
}

interface DispatchHandler {
  onConnect(abort: (reason?: unknown) => void): void
  onHeaders(status: number, headers: Buffer[], resume: () => void, statusText: string): boolean
  /** `false`: no more until `resume`. */
  onData(bytes: Uint8Array): boolean
  onComplete(): void
  onError(error: unknown): void
}

/** Under which undici, within Node and as a package, keeps it. */
const globalDispatcher = Symbol.for('undici.globalDispatcher.1')

export interface ProviderFetchOptions {
  /** Begins the sentence of an error: `openai:gpt-5`. */
  who: string
  limits?: ReadLimits
}

/** Rejects, or its body fails, with `redirect-refused`, `line-too-long` and `body-too-large`; otherwise as `fetch` does. */
export function createProviderFetch({ who, limits = defaultReadLimits }: ProviderFetchOptions): typeof fetch {
  const bounds = { who, limits }
  return async (input, init = {}) => {
    const url = typeof input === 'string' || input instanceof URL ? String(input) : input.url
    const given = typeof input === 'string' || input instanceof URL ? init : { ...partsOf(input), ...init }
    return fetchWithinOrigin((at, request) => send(at, request, bounds), url, given, who)
  }
}

function partsOf({ method, headers, body, signal }: Request): RequestInit {
  // A body that is a stream needs `duplex`, which the types do not know.
  return { method, headers, signal, ...(body === null ? undefined : { body, duplex: 'half' }) } as RequestInit
}

async function send(at: string, init: RequestInit, bounds: Bounds): Promise<Response> {
  const dispatcher = isNodesOwn(globalThis.fetch) ? findDispatcher() : undefined
  const { method = 'GET', headers, body, signal, redirect: _, ...rest } = init
  const url = new URL(at)
  const isPlain = typeof body === 'string' && Object.keys(rest).length === 0
  // `fetch` refuses a name and a password in the address, and says so.
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

/** How long a model may be silent is the run's to say (`timeouts`); undici's own five minutes would cut off a longer limit. */
const unlimited = { headersTimeout: 0, bodyTimeout: 0 }

/** Bytes that wait for whoever reads the answer before the connection is read no further. */
const readAhead = 64 * 1024

/** A redirect is answered without its body. */
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
  /** Of a body that comes as it is; what is decoded, and what is an error's, is bounded behind the decoding. */
  let meter: ByteMeter | undefined
  /** Whether the answer has begun: from then on what goes wrong is told in its body. */
  let answered = false
  /** What came in this turn: one read of the socket is one piece of the answer, however many chunks of HTTP it holds. */
  let pieces: Uint8Array[] = []
  let bytesWaiting = 0

  function hand(): void {
    if (over || pieces.length === 0) return
    controller!.enqueue(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, bytesWaiting))
    pieces = []
    bytesWaiting = 0
  }

  function fail(error: unknown): void {
    if (over) return
    leave()
    if (answered) controller!.error(error)
    else reject(error)
  }
  function leave(): void {
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
        leave()
        resolve(new Response(null, { status, headers: names }))
        abort?.()
        return true
      }
      const body = new ReadableStream<Uint8Array>(
        {
          start: (made) => void (controller = made),
          pull: resume,
          cancel(reason) {
            leave()
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
        // A status that no response can have.
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
        hand()
        fail(error)
        abort?.(error)
        return true
      }
      if (pieces.length === 0) queueMicrotask(hand)
      pieces.push(bytes)
      bytesWaiting += bytes.length
      return controller!.desiredSize! > bytesWaiting
    },
    onComplete() {
      if (over) return
      hand()
      leave()
      controller!.close()
    },
    // In the words of `fetch`, by which the packages know them.
    onError(cause) {
      if (answered) hand()
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

/** Instrumentation, test tools and frameworks put their own in its place. */
function isNodesOwn(fetch: unknown): boolean {
  if (known.fetch !== fetch) known = { fetch, own: String(fetch).includes("require('internal/deps/undici/undici')") }
  return known.own
}

function findDispatcher(): Dispatcher | undefined {
  // Node makes it with the first use of what undici gives it.
  void globalThis.Headers
  const found = (globalThis as { [globalDispatcher]?: Partial<Dispatcher> })[globalDispatcher]
  return typeof found?.dispatch === 'function' ? (found as Dispatcher) : undefined
}
