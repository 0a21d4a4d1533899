/**
 * `fetch` for the provider packages. They send a text and read a stream; most of what Node's own `fetch` does besides (a
 * `Request` and its copies, a generator for the body, a byte stream for the answer) is for browsers, and on the way to the
 * first delta it costs more than all of our own work.
 *
 * So the request is handed to what Node's `fetch` would hand it to: undici's global dispatcher, with its connections, its
 * timeouts, its proxies, and whatever the process has put in its place. Where there is none (Bun, Deno), where somebody has
 * put another `fetch` into the process, and for any request that is not of this kind, the platform's `fetch` is asked.
 */

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

export async function providerFetch(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const dispatcher = isNodesOwn(globalThis.fetch) ? findDispatcher() : undefined
  const { method = 'GET', headers, body, signal, ...rest } = init
  const isPlain = typeof input === 'string' && typeof body === 'string' && Object.keys(rest).length === 0
  if (dispatcher === undefined || !isPlain) return globalThis.fetch(input, init)
  signal?.throwIfAborted()
  const url = new URL(input)
  // It refuses them, and says so.
  if (url.username !== '' || url.password !== '') return globalThis.fetch(input, init)
  const request = { origin: url.origin, path: url.pathname + url.search, method, headers: listOf(headers), body }
  const response = await ask(dispatcher, request, signal ?? undefined)
  // Whoever follows where it leads is asked from the beginning; nothing was answered yet.
  return response ?? globalThis.fetch(input, init)
}

/** Bytes that wait for whoever reads the answer before the connection is read no further. */
const readAhead = 64 * 1024

/** Undefined for an answer that only says where the answer is. */
function ask(
  dispatcher: Dispatcher,
  request: DispatchedRequest,
  signal: AbortSignal | undefined,
): Promise<Response | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Response | undefined>()
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  let abort: ((reason?: unknown) => void) | undefined
  let over = false
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
      if (redirects.has(status)) {
        leave()
        resolve(undefined)
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
        resolve(toResponse(status, statusText, headers, body))
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

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
const nullBody: ReadonlySet<number> = new Set([204, 205, 304])

function toResponse(
  status: number,
  statusText: string,
  raw: readonly Buffer[],
  body: ReadableStream<Uint8Array>,
): Response {
  const headers = new Headers()
  for (let i = 0; i < raw.length; i += 2) headers.append(raw[i]!.toString('latin1'), raw[i + 1]!.toString('latin1'))
  return new Response(nullBody.has(status) ? null : decoded(body, headers.get('content-encoding')), {
    status,
    // A gateway may say its own in any language; nobody reads it, and a `Response` takes Latin-1 alone.
    statusText: /^[\t -~\u0080-\u00ff]*$/u.test(statusText) ? statusText : '',
    headers,
  })
}

/** No compression is asked for: it would hold deltas back. A server may compress all the same. */
function decoded(body: ReadableStream<Uint8Array>, encoding: string | null): ReadableStream<Uint8Array> {
  let plain = body
  for (const coding of encoding?.toLowerCase().split(',').toReversed() ?? []) {
    const format = formats.get(coding.trim())
    if (format === undefined) continue
    plain = plain.pipeThrough(new DecompressionStream(format) as ReadableWritablePair<Uint8Array, Uint8Array>)
  }
  return plain
}

const formats = new Map<string, CompressionFormat>([
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['deflate', 'deflate'],
  ['br', 'brotli' as CompressionFormat],
])

function listOf(given: RequestInit['headers']): string[] {
  const headers: Record<string, string> = { accept: '*/*', 'accept-encoding': 'identity' }
  const isPlain = given === undefined || (Object.getPrototypeOf(given) === Object.prototype && isTrimmed(given))
  for (const [name, value] of isPlain ? Object.entries(given ?? {}) : new Headers(given)) {
    headers[name.toLowerCase()] = value as string
  }
  return Object.entries(headers).flat()
}

/** `Headers` takes spaces and line breaks off the ends of values, and refuses what cannot be sent. */
function isTrimmed(given: object): boolean {
  return Object.values(given).every((value) => typeof value === 'string' && /^(?:[!-~](?:[ -~]*[!-~])?)?$/u.test(value))
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
