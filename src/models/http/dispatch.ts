/** Sends a request through undici's global dispatcher. */
import { createByteMeter, type ByteMeter, type MeterOptions } from '../outside/byte-meter.ts'
import { decodingsOf, toHeaders } from './http-message.ts'
import { readAhead, type BodySink, type PushBody } from './push-body.ts'

/** undici's dispatcher interface, as Node's `fetch` uses it. */
export interface Dispatcher {
  dispatch(request: DispatchedRequest, handler: DispatchHandler): unknown
}

export interface DispatchedRequest {
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

export interface Dispatched {
  status: number
  statusText: string
  headers: Headers
  /** As it was sent: compressed if the headers say so. Undefined for a redirect. */
  body: PushBody | undefined
  /** Whether the limits on its size are applied: only to unencoded bodies of successful responses. */
  isBounded: boolean
}

const settled = Promise.resolve()

/** Resolves with the response's head. `meteringOf` gives the limits on the size of its body. */
export function dispatch(
  dispatcher: Dispatcher,
  request: DispatchedRequest,
  signal: AbortSignal | undefined,
  meteringOf: (headers: Headers) => MeterOptions,
): Promise<Dispatched> {
  const { promise, resolve, reject } = Promise.withResolvers<Dispatched>()
  let abort: ((reason?: unknown) => void) | undefined
  let resumeConnection: (() => void) | undefined
  let meter: ByteMeter | undefined
  let sink: BodySink | undefined
  /** Nothing more is delivered. */
  let over = false
  /** Whether the head has been delivered. From then on, errors go to the body. */
  let answered = false
  let isPaused = false
  /** The body has ended, or failed with the error. Told after the last bytes. */
  let ending: { error?: unknown } | undefined
  /** Data received in this turn: one socket read becomes one piece, however many HTTP chunks it contains. */
  let pieces: Uint8Array[] = []
  let bytesWaiting = 0

  function deliver(): void {
    if (over || sink === undefined || isPaused) return
    if (pieces.length > 0) {
      const bytes = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, bytesWaiting)
      pieces = []
      bytesWaiting = 0
      isPaused = !sink.bytes(bytes)
    }
    // The sink may have cancelled.
    if (over || isPaused || ending === undefined) return
    detach()
    if ('error' in ending) sink.fail(ending.error)
    else sink.end()
  }

  function detach(): void {
    over = true
    signal?.removeEventListener('abort', stop)
  }
  /** At once: what has arrived is dropped. */
  function fail(error: unknown): void {
    if (over) return
    detach()
    if (!answered) reject(error)
    else if (sink !== undefined) sink.fail(error)
    else ending = { error }
  }
  function stop(): void {
    fail(signal?.reason)
    abort?.(signal?.reason)
  }
  /** After what has arrived. */
  function finish(how: { error?: unknown }): void {
    if (over) return
    if (!answered) return fail(how.error)
    ending ??= how
    deliver()
  }

  const body: PushBody = {
    start(given) {
      sink = given
      if (over) given.fail(ending?.error)
      else if (isPaused) body.resume()
      else deliver()
    },
    resume() {
      if (!isPaused) return
      isPaused = false
      deliver()
      if (!isPaused && !over) resumeConnection?.()
    },
    cancel(reason) {
      if (over) return
      detach()
      abort?.(reason)
    },
  }

  signal?.addEventListener('abort', stop)
  const handler: DispatchHandler = {
    onConnect(cut) {
      abort = cut
      if (over) cut(signal?.reason)
    },
    onHeaders(status, raw, resume, statusText) {
      if (status < 200) return true
      let headers: Headers
      try {
        headers = toHeaders(raw)
      } catch (error) {
        fail(new TypeError('fetch failed', { cause: error }))
        abort?.(error)
        return true
      }
      if (status >= 300 && status < 400 && headers.has('location')) {
        detach()
        resolve({ status, statusText, headers, body: undefined, isBounded: true })
        abort?.()
        return true
      }
      resumeConnection = resume
      const isBounded = status < 400 && decodingsOf(headers).length === 0
      if (isBounded) meter = createByteMeter(meteringOf(headers))
      answered = true
      resolve({ status, statusText, headers, body, isBounded })
      return true
    },
    onData(bytes) {
      if (over || ending !== undefined) return true
      try {
        meter?.(bytes)
      } catch (error) {
        finish({ error })
        abort?.(error)
        return true
      }
      // `queueMicrotask` of Node costs more: it keeps an async resource for each call.
      if (pieces.length === 0) void settled.then(deliver)
      pieces.push(bytes)
      bytesWaiting += bytes.length
      if (sink !== undefined) return !isPaused
      isPaused = bytesWaiting >= readAhead
      return !isPaused
    },
    onComplete: () => finish({}),
    // The provider packages recognise these messages of `fetch`.
    onError: (cause) => finish({ error: new TypeError(answered ? 'terminated' : 'fetch failed', { cause }) }),
  }
  try {
    dispatcher.dispatch(request, handler)
  } catch (error) {
    fail(error)
  }
  return promise
}
