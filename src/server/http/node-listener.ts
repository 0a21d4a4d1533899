/**
 * Serves a Web request handler with `node:http`. Guarantees for streams: headers are sent before the first chunk, a client
 * that does not read costs one chunk, a failed body aborts the transfer instead of completing it, and `request.signal`
 * fires when the client disconnects.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { MillraceError } from '../../part/error.ts'
import type { Handler } from '../handler.ts'
import { errorResponse } from '../../answer/http-error.ts'
import { toRequest } from './incoming-request.ts'
import { fromPromises, sourceOf, type BodySource } from '../../answer/streamed-body.ts'

/** ms for which the rest of a refused body is read and discarded, so that its sender receives the response. */
const lingerMs = 1000

/** `onStream`: called with each response whose body is streamed. */
export function createNodeListener(
  handler: Handler,
  onError: (error: unknown) => void,
  onStream: (outgoing: ServerResponse) => void = () => undefined,
): RequestListener {
  return (incoming, outgoing) => {
    // Sent outside `answer`, so that an open stream keeps neither its request nor its response in memory.
    answer(handler, incoming, outgoing)
      .then((body) => {
        if (body === undefined) return
        onStream(outgoing)
        pump(sourceOf(body) ?? fromStream(body), outgoing)
      })
      .catch((error: unknown) => {
        onError(error)
        outgoing.destroy()
      })
  }
}

/** Resolves with the body to stream, or undefined when the response is complete. */
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

/** JSON is sent at once, with its length. */
function isValue({ headers }: Response): boolean {
  return headers.get('content-type')?.startsWith('application/json') === true
}

function pump(source: BodySource<string | Uint8Array>, outgoing: ServerResponse): void {
  // Headers and an available first chunk go out in one packet.
  let flush: NodeJS.Immediate | undefined = setImmediate(() => outgoing.flushHeaders())
  let isFull = false
  // Callbacks instead of `await`: see `answer-source.ts`.
  const ask = () => source.next(write, breakOff)

  /** By itself: joined with the first chunk, an open response would keep the thirty strings that its head is made of. */
  function sendHead(): void {
    clearImmediate(flush)
    flush = undefined
    const { socket } = outgoing
    socket?.cork()
    process.nextTick(() => socket?.uncork())
    outgoing.flushHeaders()
  }

  function write(piece: string | Uint8Array | undefined): void {
    if (outgoing.destroyed) return clearImmediate(flush)
    if (flush !== undefined) sendHead()
    if (piece === undefined) return void outgoing.end()
    try {
      // Backpressure: nothing more is read until the socket has drained.
      isFull = !outgoing.write(piece)
    } catch {
      // A body from another source may contain values that are not bytes.
      source.cancel()
      return breakOff()
    }
    if (!isFull) ask()
  }

  /** Flushes what was written and closes without the last chunk, so that the client sees an incomplete body. */
  function breakOff(): void {
    clearImmediate(flush)
    outgoing.flushHeaders()
    outgoing.socket?.destroySoon()
  }

  outgoing.once('close', () => source.cancel())
  outgoing.on('drain', () => {
    if (isFull) ask()
    isFull = false
  })
  source.sendKeepAlive = (piece) => {
    if (!outgoing.writableNeedDrain) outgoing.write(piece)
  }
  ask()
}

/** A body that is not ours. */
function fromStream(body: ReadableStream<Uint8Array>): BodySource<Uint8Array> {
  const reader = body.getReader()
  return {
    next: fromPromises(async () => (await reader.read()).value),
    // The client is gone, so errors of the body's own cleanup are ignored.
    cancel: () => void reader.cancel().catch(() => undefined),
  }
}

/** Discards an unread body, which would block the next request of the connection. */
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
