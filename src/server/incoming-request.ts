/**
 * What `node:http` received, as a `Request`. Our routes want its line, its headers and its text; a real one, with a stream
 * and a signal of its own, costs more than all else of a small request and is made for whoever wants more of it.
 */
import type { IncomingMessage } from 'node:http'

class IncomingRequest {
  readonly method: string
  readonly url: string
  readonly headers: Headers
  readonly signal: AbortSignal
  /** Whose body nobody has asked for. */
  #message: IncomingMessage | undefined
  #real: Request | undefined

  constructor(message: IncomingMessage, url: string, headers: Headers, signal: AbortSignal) {
    this.method = message.method ?? 'GET'
    this.url = url
    this.headers = headers
    this.signal = signal
    this.#message = message
  }

  static real(request: object): Request | undefined {
    if (!(#real in request)) return undefined
    const { method, url, headers, signal } = request
    if (request.#real === undefined) {
      const init: RequestInit & { duplex?: 'half' } = { method, headers, signal }
      const message = method === 'GET' || method === 'HEAD' ? undefined : IncomingRequest.take(request)
      if (message !== undefined) {
        init.body = bodyOf(message)
        init.duplex = 'half'
      }
      request.#real = new Request(url, init)
    }
    return request.#real
  }

  static take(request: object): IncomingMessage | undefined {
    if (!(#message in request)) return undefined
    const message = request.#message
    request.#message = undefined
    return message
  }
}

/** Undefined when the request line or a header is nothing that a `Request` can hold. */
export function toRequest(message: IncomingMessage, signal: AbortSignal): Request | undefined {
  const { method = 'GET', url: target = '/', rawHeaders } = message
  // In the absolute form, which proxies send, the path stands behind the origin.
  const isWhole = /^https?:\/\//iu.test(target)
  const url = URL.parse(isWhole ? target : `http://${message.headers.host ?? 'localhost'}${target}`)
  if (url === null || url.username !== '' || url.password !== '' || refused.has(method)) return undefined
  const headers = new Headers()
  try {
    for (let i = 0; i < rawHeaders.length; i += 2) headers.append(rawHeaders[i]!, rawHeaders[i + 1]!)
  } catch {
    return undefined
  }
  if (!isComplete) complete()
  const request: object = new IncomingRequest(message, url.href, headers, signal)
  return request as Request
}

/** No `Request` may have them. */
const refused: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'TRACK'])

/** The request for code that is not ours: Node's own functions take no other. */
export function realRequest(request: Request): Request {
  return IncomingRequest.real(request) ?? request
}

/** The message behind a request whose body nobody has asked for, to be read instead of the body. */
export function takeMessage(request: Request): IncomingMessage | undefined {
  return IncomingRequest.take(request)
}

/** Hands on the pieces of a message; what `take` throws ends the reading, the rest of it stays where it is. */
export async function readMessage(message: IncomingMessage, take: (piece: Uint8Array) => void): Promise<void> {
  if (message.destroyed) throw message.errored ?? new Error('aborted')
  if (message.readableLength === Number(message.headers['content-length'])) {
    // A small one has come with its head: it is there, and needs no events.
    const all = message.read() as Uint8Array | null
    if (all !== null) take(all)
    // Its end is told behind the request to the model, which leaves with this turn or the next.
    setImmediate(() => setImmediate(() => message.resume()))
    return
  }
  await new Promise<void>((resolve, reject) => {
    const settle = (then: () => void) => {
      // The message stays for as long as its answer.
      message.off('data', onData).off('end', onEnd).off('error', onError)
      then()
    }
    const onData = (piece: Uint8Array) => {
      try {
        take(piece)
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

/** With the first request: what makes a `Request` takes its time to load, and a server is to listen before. */
function complete(): void {
  isComplete = true
  Object.setPrototypeOf(IncomingRequest.prototype, Request.prototype)
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(Request.prototype))) {
    if (name === 'constructor') continue
    Object.defineProperty(IncomingRequest.prototype, name, {
      get(this: object) {
        const real = IncomingRequest.real(this)!
        return typeof value === 'function' ? value.bind(real) : real[name as keyof Request]
      },
    })
  }
}

function bodyOf(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  let left = false
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        if (incoming.destroyed) return controller.error(incoming.errored ?? new Error('aborted'))
        const take = (chunk: Uint8Array) => {
          if (left) return
          incoming.pause()
          controller.enqueue(chunk)
        }
        const fail = (error: Error) => controller.error(error)
        incoming.on('data', take).on('error', fail)
        incoming.once('end', () => {
          if (!left) controller.close()
          // The message stays for as long as its answer.
          incoming.off('data', take).off('error', fail)
        })
        incoming.pause()
      },
      pull: () => void incoming.resume(),
      cancel() {
        left = true
      },
    },
    { highWaterMark: 0 },
  )
}
