/**
 * Serves a Web request handler with `node:http`. Guarantees for streams: headers are sent before the first chunk, a client
 * that does not read costs one chunk, a failed body aborts the transfer instead of completing it, and `request.signal`
 * fires when the client disconnects.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { MillraceError } from '../../part/error.ts'
import type { Handler } from '../handler-context.ts'
import { errorResponse } from '../../delivery/http-error.ts'
import { lightAnswer, recordOf } from '../../delivery/light-response.ts'
import { discardUnread, toRequest } from './incoming-request.ts'
import { fromPromises, sourceOf, type BodySource } from '../../delivery/streamed-body.ts'

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
      .then((source) => {
        if (source === undefined) return
        onStream(outgoing)
        pump(source, outgoing)
      })
      .catch((error: unknown) => {
        onError(error)
        outgoing.destroy()
      })
  }
}

/** Resolves with the source of the body to stream, or undefined when the response is complete. */
async function answer(
  handler: Handler,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<BodySource<string | Uint8Array> | undefined> {
  const gone = new AbortController()
  // Not `once`, here and below: it allocates two more objects, and a response closes only once.
  outgoing.on('close', () => {
    if (!outgoing.writableFinished) gone.abort(new MillraceError('client-gone', 'The client has disconnected.'))
  })
  const request = toRequest(incoming, gone.signal)
  const response = request === undefined ? errorResponse(badRequest()) : await handler(request)
  const light = lightAnswer(response)
  if (outgoing.destroyed) {
    if (light === undefined) await response.body?.cancel()
    else light.source.cancel()
    return undefined
  }
  const isRead = incoming.readableEnded || (incoming.complete && incoming.readableLength === 0)
  if (!isRead) outgoing.once('finish', () => linger(incoming))
  if (light !== undefined) {
    try {
      outgoing.writeHead(response.status, light.head)
    } catch (error) {
      // A custom protocol may have set an invalid header.
      light.source.cancel()
      throw error
    }
    return light.source
  }
  const { status, body } = response
  const headers = recordOf(response.headers)
  if (body === null || incoming.method === 'HEAD') {
    outgoing.writeHead(status, headers).end()
    await body?.cancel()
  } else if (isValue(response)) {
    const bytes = new Uint8Array(await response.arrayBuffer())
    outgoing.writeHead(status, { ...headers, 'content-length': String(bytes.byteLength) }).end(bytes)
  } else {
    outgoing.writeHead(status, headers)
    return sourceOf(body) ?? fromStream(body)
  }
  return undefined
}

/** JSON is sent at once, with its length. */
function isValue({ headers }: Response): boolean {
  return headers.get('content-type')?.startsWith('application/json') === true
}

function pump(source: BodySource<string | Uint8Array>, outgoing: ServerResponse): void {
  new Pump(source, outgoing).ask()
}

/** A class, not closures: one for each open stream (decisions/0028). */
class Pump {
  /** Cleared at the end: Node may retain a response for long, which must not retain the run. */
  #source: BodySource<string | Uint8Array> | undefined
  readonly #outgoing: ServerResponse
  #flush: NodeJS.Immediate | undefined
  #isFull = false
  #drains = false

  constructor(source: BodySource<string | Uint8Array>, outgoing: ServerResponse) {
    this.#source = source
    this.#outgoing = outgoing
    // Headers and an available first chunk go out in one packet.
    this.#flush = setImmediate(() => outgoing.flushHeaders())
    outgoing.on('close', () => this.#leave())
    source.sendKeepAlive = (piece) => {
      if (!outgoing.writableNeedDrain) outgoing.write(piece)
    }
  }

  // Callbacks instead of `await`: see `answer-source.ts`.
  ask(): void {
    this.#source?.next(this.#write, this.#breakOff)
  }

  #leave(): void {
    this.#source?.cancel()
    this.#source = undefined
  }

  /** In a separate write: joined with the first chunk, an open response would retain the thirty strings of its head. */
  #sendHead(): void {
    clearImmediate(this.#flush)
    this.#flush = undefined
    const { socket } = this.#outgoing
    socket?.cork()
    process.nextTick(() => socket?.uncork())
    this.#outgoing.flushHeaders()
  }

  readonly #write = (piece: string | Uint8Array | undefined): void => {
    const outgoing = this.#outgoing
    if (outgoing.destroyed) return clearImmediate(this.#flush)
    if (this.#flush !== undefined) this.#sendHead()
    if (piece === undefined) {
      this.#source = undefined
      return void outgoing.end()
    }
    try {
      // Backpressure: stop reading until the socket has drained.
      this.#isFull = !outgoing.write(piece)
    } catch {
      // A body from another source may contain values that are not bytes.
      this.#leave()
      return this.#breakOff()
    }
    if (!this.#isFull) this.ask()
    else if (!this.#drains) this.#awaitDrain()
  }

  /** Most responses never fill the buffer, so they have no listener for it. */
  #awaitDrain(): void {
    this.#drains = true
    this.#outgoing.on('drain', () => {
      if (this.#isFull) this.ask()
      this.#isFull = false
    })
  }

  /** Flushes the written data and closes without the last chunk, so that the client sees an incomplete body. */
  readonly #breakOff = (): void => {
    clearImmediate(this.#flush)
    this.#outgoing.flushHeaders()
    this.#outgoing.socket?.destroySoon()
  }
}

/** A body from another source. */
function fromStream(body: ReadableStream<Uint8Array>): BodySource<Uint8Array> {
  const reader = body.getReader()
  return {
    next: fromPromises(async () => (await reader.read()).value),
    // The client is gone, so errors of the body's own cleanup are ignored.
    cancel: () => void reader.cancel().catch(() => undefined),
  }
}

/** Discards an unread body. A body that takes too long to arrive ends the connection. */
function linger(incoming: IncomingMessage): void {
  const { socket } = incoming
  if (incoming.readableEnded) return
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  incoming.once('close', () => clearTimeout(timer))
  incoming.once('end', () => clearTimeout(timer))
  discardUnread(incoming)
}

function badRequest(): MillraceError {
  return new MillraceError('bad-request', 'The request line or a header is malformed.')
}
