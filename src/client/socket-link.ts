/**
 * `fetch` over Socket.IO: the requests of a client, and the streams that answer them, on one connection. A lost connection breaks what
 * it carried, as over HTTP, so a reader of a run continues after its last entry.
 */
import { MillraceError } from '../part/error.ts'
import type { ClientSocket, SocketLink } from './lazy-link.ts'

type Ack =
  | { ok: true; status: number; headers: Record<string, string>; body?: string; streams?: true }
  | { ok: false; error: { code: string; message: string; retryAfter?: number } }

interface Chunk {
  id: string
  text?: string
  end?: true
  broken?: true
}

/** A request that has no answer yet, or whose answer streams. */
interface Pending {
  /** Characters that were sent and are not acknowledged yet. */
  size: number
  take(chunk: Chunk, taken?: () => void): void
  fail(error: Error): void
}

/** `open` is called with the first request. */
export function linkOf(open: () => ClientSocket): SocketLink {
  const pending = new Map<string, Pending>()
  const waiting = new Set<{ go(socket: ClientSocket): void; fail(error: Error): void }>()
  let socket: ClientSocket | undefined
  let count = 0
  /** How many requests of this connection were refused because the server shuts down. */
  let refusals = 0

  function connected(signal: AbortSignal | null | undefined): Promise<ClientSocket> {
    const at = (socket ??= listen(open()))
    if (at.connected) return Promise.resolve(at)
    if (!at.active) at.connect()
    return new Promise((go, fail) => {
      const one = { go, fail }
      waiting.add(one)
      signal?.addEventListener('abort', () => waiting.delete(one) && fail(left(signal)), { once: true })
    })
  }

  function listen(opened: ClientSocket): ClientSocket {
    opened.on('connect', () => {
      refusals = 0
      for (const { go } of waiting) go(opened)
      waiting.clear()
    })
    opened.on('connect_error', (error: Error & { data?: { code?: unknown } }) => {
      const { data } = error
      // The server has answered: it will not answer otherwise the next time.
      const isRefused = typeof data?.code === 'string'
      for (const { fail } of waiting) fail(isRefused ? new MillraceError(data!.code as string, error.message) : error)
      waiting.clear()
    })
    opened.on('disconnect', (reason: string, details?: unknown) => {
      const lost = new Error(`The connection was lost: ${reason}.`)
      // The server does not say which message it was. Sent again, it would end the next connection as well.
      const size = isTooLarge(details) ? Math.max(...[...pending.values()].map((each) => each.size)) : Infinity
      for (const each of pending.values()) each.fail(each.size >= size && size > 0 ? tooLarge(size) : lost)
      pending.clear()
    })
    opened.on('chunk', (chunk: Chunk, taken?: () => void) => pending.get(chunk.id)?.take(chunk, taken))
    return opened
  }

  async function ask(input: string, init: RequestInit = {}): Promise<Response> {
    const { method = 'GET', headers, body, signal } = init
    if (signal?.aborted) throw left(signal)
    const at = await connected(signal)
    if (signal?.aborted) throw left(signal)
    const id = String(++count)
    const { pathname, search } = new URL(input, 'http://server')
    // The key was sent with the handshake.
    const { 'content-type': _, authorization: _key, ...sent } = Object.fromEntries(new Headers(headers))
    const data = {
      id,
      method,
      path: pathname + search,
      headers: sent,
      ...(body != null && { body: JSON.parse(body as string) as unknown }),
    }
    return new Promise((resolve, reject) => {
      const leave = () => {
        if (!pending.delete(id)) return
        at.emit('message', { type: 'cancel_request', data: { id } }, () => undefined)
        stream.fail(left(signal))
        reject(left(signal))
      }
      const over = () => {
        pending.delete(id)
        signal?.removeEventListener('abort', leave)
      }
      const stream = streamOf(over, leave)
      const one: Pending = {
        size: JSON.stringify(data).length,
        take: stream.take,
        fail(error) {
          over()
          stream.fail(error)
          reject(error)
        },
      }
      pending.set(id, one)
      signal?.addEventListener('abort', leave, { once: true })
      at.emit('message', { type: 'request', data }, (ack: Ack) => {
        if (!pending.has(id)) return
        one.size = 0
        if (!ack.ok) {
          over()
          const { code, retryAfter } = ack.error
          const isClosing = code === 'closing'
          // The next request opens a connection, which a balancer leads to another server. Streams get a moment to end before that.
          if (isClosing && (pending.size === 0 || ++refusals > 1)) at.disconnect()
          const hint = retryAfter === undefined ? undefined : { 'retry-after': String(retryAfter) }
          return resolve(Response.json({ error: ack.error }, { status: isClosing ? 503 : 400, headers: { ...hint } }))
        }
        const { status, headers: ackHeaders, streams } = ack
        if (streams) return resolve(new Response(stream.body, { status, headers: ackHeaders }))
        over()
        resolve(new Response(status === 204 ? null : ack.body, { status, headers: ackHeaders }))
      })
    })
  }

  return {
    fetch: (async (input, init) => {
      try {
        return await ask(input as string, init)
      } catch (error) {
        // The server has refused the connection or a message on it.
        if (!(error instanceof MillraceError)) throw error
        const { code, message } = error
        const status = code === 'unauthorized' ? 401 : code === 'too-large' ? 413 : 403
        return Response.json({ error: { code, message } }, { status })
      }
    }) as typeof fetch,
    close: () => void socket?.disconnect(),
  }
}

/** How Socket.IO ends a connection over a message beyond its `maxHttpBufferSize`: WebSocket's code for it, or the status of the request of a client that polls. */
function isTooLarge(details: unknown): boolean {
  const { context, description } = (details ?? {}) as { context?: { code?: unknown }; description?: unknown }
  return context?.code === 1009 || description === 413
}

function tooLarge(size: number): MillraceError {
  const cure = 'Send less. The operator can raise server.maxBodyBytes in the config.'
  return new MillraceError('too-large', `A message of ${size} characters is larger than the server takes. ${cure}`)
}

function left(signal: AbortSignal | null | undefined): Error {
  return (signal?.reason as Error | undefined) ?? new Error('The reader has left.')
}

/** The body of a response, in chunks that are acknowledged once they are read. */
function streamOf(over: () => void, leave: () => void) {
  const bytes = new TextEncoder()
  const untaken: (() => void)[] = []
  let controller: ReadableStreamDefaultController<Uint8Array>
  const body = new ReadableStream<Uint8Array>({
    start: (given) => void (controller = given),
    pull: () => untaken.splice(0).forEach((taken) => taken()),
    cancel: leave,
  })
  return {
    body,
    take({ text, end, broken }: Chunk, taken: () => void = () => undefined): void {
      if (text !== undefined) {
        controller.enqueue(bytes.encode(text))
        if ((controller.desiredSize ?? 0) > 0) taken()
        else untaken.push(taken)
        return
      }
      over()
      if (end) controller.close()
      else if (broken) controller.error(new Error('The server has broken off.'))
    },
    fail(error: Error): void {
      try {
        controller.error(error)
      } catch {
        // It is closed already.
      }
    },
  }
}
