/**
 * A lightweight `Request` over a `node:http` message. Our routes need only method, URL, headers and body text. A real `Request`, with its stream
 * and signal, costs more than the rest of a small request, so it is lazy.
 */
import type { IncomingMessage } from 'node:http'
import { realResponse } from '../../delivery/light-response.ts'
import type { Socket } from 'node:net'
import { standIn } from '../../delivery/stand-in.ts'

class IncomingRequest {
  readonly method: string
  readonly url: string
  readonly headers: Headers
  readonly signal: AbortSignal
  /** The message while its body is unread. */
  #message: IncomingMessage | undefined
  #real: Request | undefined
  readonly #socket: Socket

  constructor(message: IncomingMessage, url: string, headers: Headers, signal: AbortSignal) {
    this.method = message.method ?? 'GET'
    this.url = url
    this.headers = headers
    this.signal = signal
    this.#message = message
    this.#socket = message.socket
  }

  static real(request: object): Request | undefined {
    if (!(#real in request)) return undefined
    const { method, url, headers, signal } = request
    if (request.#real === undefined) {
      const init: RequestInit & { duplex?: 'half' } = { method, headers, signal }
      const message = method === 'GET' || method === 'HEAD' ? undefined : IncomingRequest.claim(request)
      if (message !== undefined) {
        init.body = bodyOf(message)
        init.duplex = 'half'
      }
      request.#real = new Request(url, init)
    }
    return request.#real
  }

  static is(request: object): boolean {
    return #message in request
  }

  static address(request: object): string | undefined {
    return #socket in request ? request.#socket.remoteAddress : undefined
  }

  static claim(request: object): IncomingMessage | undefined {
    if (!(#message in request)) return undefined
    const message = request.#message
    request.#message = undefined
    return message
  }
}

/** Undefined when a `Request` cannot represent the request line or a header. */
export function toRequest(message: IncomingMessage, signal: AbortSignal): Request | undefined {
  const { method = 'GET', url: target = '/', headers, rawHeaders } = message
  const url = addressAt(headers.host ?? 'localhost', target)
  if (url === undefined || refused.has(method) || rawHeaders.some(hasNul)) return undefined
  if (!isComplete) standIn(IncomingRequest.prototype, Request, (given) => IncomingRequest.real(given)!)
  isComplete = true
  const request: object = new IncomingRequest(message, url, toHeaders(rawHeaders), signal)
  return request as Request
}

/** The whole URL of a request target. Undefined if it is invalid, or has credentials. */
function addressAt(host: string, target: string): string | undefined {
  // Proxies send the absolute form: origin and path.
  const isWhole = /^https?:\/\//iu.test(target)
  const url = URL.parse(isWhole ? target : `http://${host}${target}`)
  if (url === null || url.username !== '' || url.password !== '') return undefined
  return url.href
}

/** `raw`: names and values, alternating. */
function toHeaders(raw: readonly string[]): Headers {
  const headers = new Headers()
  for (let i = 0; i < raw.length; i += 2) headers.append(raw[i]!, raw[i + 1]!)
  return headers
}

/** With `insecureHTTPParser` Node accepts it, but `Headers` does not. */
function hasNul(text: string): boolean {
  return text.includes('\0')
}

/** Methods that the Fetch standard forbids. */
const refused: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'TRACK'])

/** A real `Request` for application code: Node's functions accept no other. */
export function realRequest(request: Request): Request {
  return IncomingRequest.real(request) ?? request
}

/** The same request with GET: its response without a body answers HEAD. */
export function asGet(request: Request): Request {
  const get = new Request(realRequest(request), { method: 'GET' })
  const address = addressOf(request)
  if (address !== undefined) noteAddress(get, address)
  return get
}

/** Our own listener needs no real `Response`; every other server does. */
export function responseTo(request: Request, response: Response): Response {
  return IncomingRequest.is(request) ? response : realResponse(response)
}

/** The remote address of a request to our own listener. Headers cannot change it. */
export function addressOf(request: Request): string | undefined {
  return IncomingRequest.address(request) ?? addresses.get(request)
}

const addresses = new WeakMap<Request, string>()

/** For a request over another kind of connection. */
export function noteAddress(request: Request, address: string): void {
  addresses.set(request, address)
}

/** The Node message behind a request whose body is unread, to read instead of the body. Undefined after the first call. */
export function claimMessage(request: Request): IncomingMessage | undefined {
  return IncomingRequest.claim(request)
}

/** Takes a chunk. If it returns a promise, the next chunk comes after that has settled. */
export type OnPiece = (piece: Uint8Array) => void | Promise<void>

/** Calls `onPiece` with each chunk of a message. If it throws or rejects, reading stops and the rest stays unread. */
export async function readMessage(message: IncomingMessage, onPiece: OnPiece): Promise<void> {
  const length = Number(message.headers['content-length'])
  // The parser calls for the head before it continues reading.
  if (message.readableLength !== length) await Promise.resolve()
  if (message.destroyed) throw message.errored ?? new Error('aborted')
  if (message.readableLength === length) {
    // A small body arrived together with its headers: no events are needed.
    const all = message.read() as Uint8Array | null
    if (all !== null) await onPiece(all)
    // For its end event.
    message.resume()
    return
  }
  await new Promise<void>((resolve, reject) => {
    const settle = (then: () => void) => {
      // The message lives as long as its response.
      message.off('data', onData).off('end', onEnd).off('error', onError)
      then()
    }
    const onData = (piece: Uint8Array) => {
      try {
        const taken = onPiece(piece)
        if (taken === undefined) return
        message.pause()
        taken.then(() => message.resume(), onError)
      } catch (error) {
        message.pause()
        onError(error)
      }
    }
    const onEnd = () => settle(resolve)
    const onError = (error: unknown) => settle(() => reject(error))
    message.on('data', onData).on('end', onEnd).on('error', onError)
  })
}

let isComplete = false

/** Discards the unread rest of a body: it would block the next request of the connection. */
export function discardUnread(message: IncomingMessage): void {
  // A reader that has just received a chunk asks for the next one first.
  setImmediate(() => {
    message.emit(unread)
    message.resume()
  })
}

const unread = Symbol('unread')

function bodyOf(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  let left = false
  let isAwaited = false
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        if (incoming.destroyed) return controller.error(incoming.errored ?? new Error('aborted'))
        const onChunk = (chunk: Uint8Array) => {
          if (left) return
          isAwaited = false
          incoming.pause()
          controller.enqueue(chunk)
        }
        const fail = (error: Error) => controller.error(error)
        incoming.on('data', onChunk).on('error', fail)
        incoming.once(unread, () => {
          if (isAwaited || left) return
          left = true
          controller.error(new Error('The rest of this body was discarded when its response was complete.'))
        })
        incoming.once('end', () => {
          if (!left) controller.close()
          // The message lives as long as its response.
          incoming.off('data', onChunk).off('error', fail)
        })
        incoming.pause()
      },
      pull() {
        isAwaited = true
        incoming.resume()
      },
      cancel() {
        left = true
      },
    },
    { highWaterMark: 0 },
  )
}
