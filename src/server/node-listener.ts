/**
 * A handler of Web requests behind `node:http`. What a streaming server must be sure of: headers leave before the first
 * chunk, a client that does not read costs one chunk, a body that fails breaks the transfer instead of ending it, and
 * `request.signal` fires when the client goes.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { MillraceError } from '../part/error.ts'
import type { Handler } from './handler.ts'
import { errorResponse } from './http-error.ts'
import { toRequest } from './incoming-request.ts'
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

function pump(source: BodySource<string | Uint8Array>, outgoing: ServerResponse): void {
  // With the first piece when that is there already: one packet instead of two.
  const flush = setImmediate(() => outgoing.flushHeaders())
  let isFull = false
  // Called back instead of waited for: `stream-response.ts` says why.
  const ask = () => void source.next().then(take, breakOff)

  function take(piece: string | Uint8Array | undefined): void {
    clearImmediate(flush)
    if (outgoing.destroyed) return
    if (piece === undefined) return void outgoing.end()
    try {
      // Nothing more is pulled before the client's socket has taken what it was given.
      isFull = !outgoing.write(piece)
    } catch {
      // A body of somebody else's may hold anything.
      source.leave()
      return breakOff()
    }
    if (!isFull) ask()
  }

  /** The body is incomplete and must look so: what was written is flushed, the last chunk is missing. */
  function breakOff(): void {
    clearImmediate(flush)
    outgoing.flushHeaders()
    outgoing.socket?.destroySoon()
  }

  outgoing.once('close', () => source.leave())
  outgoing.on('drain', () => {
    if (isFull) ask()
    isFull = false
  })
  source.say = (text) => {
    if (!outgoing.writableNeedDrain) outgoing.write(text)
  }
  ask()
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
