/** Sends a request through undici's global dispatcher. */
import { createByteMeter, type ByteMeter, type MeterOptions } from '../limits/byte-meter.ts'
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
  /** As sent: compressed if the headers declare it. Undefined for a redirect. */
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
  const head = Promise.withResolvers<Dispatched>()
  const exchange = new Exchange(head, signal, meteringOf)
  try {
    dispatcher.dispatch(request, exchange)
  } catch (error) {
    exchange.fail(error)
  }
  return head.promise
}

/** Handles a request and is the body of its response. One object for each open stream, without closures: there may be thousands. */
class Exchange implements DispatchHandler, PushBody {
  /** Undefined once it has been delivered. From then on, errors go to the body. */
  #head: PromiseWithResolvers<Dispatched> | undefined
  readonly #signal: AbortSignal | undefined
  readonly #meteringOf: (headers: Headers) => MeterOptions
  #abort: ((reason?: unknown) => void) | undefined = undefined
  #resumeConnection: (() => void) | undefined = undefined
  #meter: ByteMeter | undefined = undefined
  #sink: BodySink | undefined = undefined
  /** Ends all delivery. */
  #over = false
  #isPaused = false
  /** The body has ended, or failed with the error. Delivered after the last bytes. */
  #ending: { error?: unknown } | undefined = undefined
  /** Data received in this turn: one socket read becomes one piece, however many HTTP chunks it contains. */
  #pieces: Uint8Array[] | undefined = undefined
  #bytesWaiting = 0

  constructor(
    head: PromiseWithResolvers<Dispatched>,
    signal: AbortSignal | undefined,
    meteringOf: (headers: Headers) => MeterOptions,
  ) {
    this.#head = head
    this.#signal = signal
    this.#meteringOf = meteringOf
    signal?.addEventListener('abort', this)
  }

  readonly #deliver = (): void => {
    if (this.#over || this.#sink === undefined || this.#isPaused) return
    const pieces = this.#pieces
    if (pieces !== undefined) {
      const bytes = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, this.#bytesWaiting)
      this.#pieces = undefined
      this.#bytesWaiting = 0
      this.#isPaused = !this.#sink.bytes(bytes)
    }
    // The sink may have cancelled.
    if (this.#over || this.#isPaused || this.#ending === undefined) return
    this.#detach()
    if ('error' in this.#ending) this.#sink.fail(this.#ending.error)
    else this.#sink.end()
  }

  #detach(): void {
    this.#over = true
    this.#signal?.removeEventListener('abort', this)
  }

  /** At once: received data is dropped. */
  fail(error: unknown): void {
    if (this.#over) return
    this.#detach()
    if (this.#head !== undefined) this.#head.reject(error)
    else if (this.#sink !== undefined) this.#sink.fail(error)
    else this.#ending = { error }
  }

  /** The signal has aborted. */
  handleEvent(): void {
    this.fail(this.#signal?.reason)
    this.#abort?.(this.#signal?.reason)
  }

  /** After the received data. */
  #finish(how: { error?: unknown }): void {
    if (this.#over) return
    if (this.#head !== undefined) return this.fail(how.error)
    this.#ending ??= how
    this.#deliver()
  }

  start(sink: BodySink): void {
    this.#sink = sink
    if (this.#over) sink.fail(this.#ending?.error)
    else if (this.#isPaused) this.resume()
    else this.#deliver()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#deliver()
    if (!this.#isPaused && !this.#over) this.#resumeConnection?.()
  }

  cancel(reason: unknown): void {
    if (this.#over) return
    this.#detach()
    this.#abort?.(reason)
  }

  onConnect(cut: (reason?: unknown) => void): void {
    this.#abort = cut
    if (this.#over) cut(this.#signal?.reason)
  }

  onHeaders(status: number, raw: Buffer[], resume: () => void, statusText: string): boolean {
    if (status < 200) return true
    let headers: Headers
    try {
      headers = toHeaders(raw)
    } catch (error) {
      this.fail(new TypeError('fetch failed', { cause: error }))
      this.#abort?.(error)
      return true
    }
    if (status >= 300 && status < 400 && headers.has('location')) {
      this.#detach()
      this.#head?.resolve({ status, statusText, headers, body: undefined, isBounded: true })
      this.#abort?.()
      return true
    }
    this.#resumeConnection = resume
    const isBounded = status < 400 && decodingsOf(headers).length === 0
    if (isBounded) this.#meter = createByteMeter(this.#meteringOf(headers))
    this.#head?.resolve({ status, statusText, headers, body: this, isBounded })
    this.#head = undefined
    return true
  }

  onData(bytes: Uint8Array): boolean {
    if (this.#over || this.#ending !== undefined) return true
    try {
      this.#meter?.(bytes)
    } catch (error) {
      this.#finish({ error })
      this.#abort?.(error)
      return true
    }
    // Node's `queueMicrotask` costs more: it keeps an async resource for each call.
    if (this.#pieces !== undefined) this.#pieces.push(bytes)
    else {
      this.#pieces = [bytes]
      void settled.then(this.#deliver)
    }
    this.#bytesWaiting += bytes.length
    if (this.#sink !== undefined) return !this.#isPaused
    this.#isPaused = this.#bytesWaiting >= readAhead
    return !this.#isPaused
  }

  onComplete(): void {
    this.#finish({})
  }

  onError(cause: unknown): void {
    // The provider packages recognise these messages of `fetch`.
    this.#finish({ error: new TypeError(this.#head === undefined ? 'terminated' : 'fetch failed', { cause }) })
  }
}
