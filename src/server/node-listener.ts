/**
 * A handler of Web requests behind `node:http`. What a streaming server must be sure of: headers leave before the first
 * chunk, a client that does not read costs one chunk, a body that fails breaks the transfer instead of ending it, and
 * `request.signal` fires when the client goes.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { MillraceError } from '../part/error.ts'
import type { Handler } from './handler.ts'
import { errorResponse } from './http-error.ts'
import { sourceOf, type BodySource } from './streamed-body.ts'

/** How long the rest of a refused body is read and thrown away, so that its sender gets to see the answer. */
const lingerMs = 1000

export function createNodeListener(handler: Handler, onError: (error: unknown) => void): RequestListener {
  return (incoming, outgoing) => {
    // Pumped from outside, so that a stream holds neither its request nor its response for as long as it is open.
    answer(handler, incoming, outgoing)
      .then((body) => body && pump(sourceOf(body) ?? fromStream(body), outgoing))
      .catch((error: unknown) => {
        onError(error)
        outgoing.destroy()
      })
  }
}

/** Resolves with the body that is left to be sent; undefined when all is done. */
async function answer(
  handler: Handler,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<ReadableStream<Uint8Array> | undefined> {
  const gone = new AbortController()
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) gone.abort(new MillraceError('client-gone', 'The client has disconnected.'))
  })
  const request = toRequest(incoming, gone.signal)
  const response = request === undefined ? errorResponse(badRequest()) : await handler(request)
  const { status, body } = response
  if (outgoing.destroyed) {
    await body?.cancel()
    return undefined
  }
  if (!incoming.readableEnded) outgoing.once('finish', () => linger(incoming))
  const headers = headersOf(response)
  if (body === null || incoming.method === 'HEAD') {
    outgoing.writeHead(status, headers).end()
    await body?.cancel()
  } else if (isValue(response)) {
    const bytes = new Uint8Array(await response.arrayBuffer())
    outgoing.writeHead(status, { ...headers, 'content-length': String(bytes.byteLength) }).end(bytes)
  } else {
    outgoing.writeHead(status, headers)
    return body
  }
  return undefined
}

/** JSON is one value, sent whole with its length. */
function isValue({ headers }: Response): boolean {
  return headers.get('content-type')?.startsWith('application/json') === true
}

async function pump(source: BodySource<string | Uint8Array>, outgoing: ServerResponse): Promise<void> {
  // With the first piece when that is there already: one packet instead of two.
  const flush = setImmediate(() => outgoing.flushHeaders())
  let wake: () => void = () => undefined
  outgoing.once('close', () => {
    wake()
    source.leave()
  })
  outgoing.on('drain', () => wake())
  source.say = (text) => {
    if (!outgoing.writableNeedDrain) outgoing.write(text)
  }
  try {
    for (;;) {
      const piece = await source.next()
      clearImmediate(flush)
      if (outgoing.destroyed) return
      if (piece === undefined) {
        outgoing.end()
        return
      }
      // Nothing more is pulled before the client's socket has taken what it was given.
      if (!outgoing.write(piece) && !outgoing.destroyed) await new Promise<void>((resolve) => (wake = resolve))
    }
  } catch {
    // The body is incomplete and must look so: what was written is flushed, the last chunk is missing.
    clearImmediate(flush)
    outgoing.flushHeaders()
    outgoing.socket?.destroySoon()
  }
}

/** A body of somebody else's. */
function fromStream(body: ReadableStream<Uint8Array>): BodySource<Uint8Array> {
  const reader = body.getReader()
  return {
    next: async () => (await reader.read()).value,
    // What the body's own clean-up throws concerns nobody who is still there.
    leave: () => void reader.cancel().catch(() => undefined),
  }
}

/** Undefined when the request line or a header is nothing that a `Request` can hold. */
function toRequest(incoming: IncomingMessage, signal: AbortSignal): Request | undefined {
  const { method = 'GET', url = '/', rawHeaders } = incoming
  try {
    const headers = new Headers()
    for (let i = 0; i < rawHeaders.length; i += 2) headers.append(rawHeaders[i]!, rawHeaders[i + 1]!)
    // In the absolute form, which proxies send, the path stands behind the origin.
    const target = /^https?:\/\//iu.test(url) ? url : `http://${incoming.headers.host ?? 'localhost'}${url}`
    const init: RequestInit & { duplex?: 'half' } = { method, headers, signal }
    if (method !== 'GET' && method !== 'HEAD') {
      init.body = bodyOf(incoming)
      init.duplex = 'half'
    }
    return new Request(target, init)
  } catch {
    return undefined
  }
}

function bodyOf(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  let left = false
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
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

/** A body that nobody read blocks the connection's next request. */
function linger(incoming: IncomingMessage): void {
  const { socket } = incoming
  if (incoming.readableEnded) return
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  incoming.once('close', () => clearTimeout(timer))
  incoming.once('end', () => clearTimeout(timer))
  incoming.resume()
}

function headersOf({ headers }: Response): Record<string, string | string[]> {
  const cookies = headers.getSetCookie()
  return { ...Object.fromEntries(headers), ...(cookies.length > 0 ? { 'set-cookie': cookies } : undefined) }
}

function badRequest(): MillraceError {
  return new MillraceError('bad-request', 'The request line or a header is malformed.')
}
