/** The port of a server, and its streams, from the start to the last byte. */
import type { Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pause } from '../../async/pause.ts'
import { MillraceError } from '../../part/error.ts'

/** Listens, and resolves with the URL. Throws `port-in-use`. */
export async function openPort(server: Server, wanted: number, host: string): Promise<string> {
  await new Promise<void>((done, fail) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const busy = `Port ${wanted} is in use; choose another with --port (0 picks a free one).`
      fail(error.code === 'EADDRINUSE' ? new MillraceError('port-in-use', busy) : error)
    })
    server.listen(wanted, host, done)
  })
  const { port } = server.address() as AddressInfo
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

export interface Port {
  /** Accepts no more connections. */
  leave(): void
  /** Resolves when the last connection is closed: after a moment, the remaining ones are closed by force. */
  left(): Promise<void>
}

/** ms in which slow readers can receive the rest. */
const restMs = 1000

export function createPort(server: Server): Port {
  const closed = Promise.withResolvers<void>()
  let idle: ReturnType<typeof setInterval> | undefined
  return {
    leave() {
      if (idle !== undefined) return
      server.close(() => closed.resolve())
      // Idle keep-alive connections would keep the server open.
      idle = setInterval(() => server.closeIdleConnections(), 10)
    },
    async left() {
      // All runs have ended and little remains to be sent, but readers may be slow or not reading at all.
      const enough = setTimeout(() => server.closeAllConnections(), restMs)
      await closed.promise
      clearInterval(idle)
      clearTimeout(enough)
    },
  }
}

/** The open responses. */
export interface Streams {
  readonly size: number
  add(outgoing: ServerResponse): void
  /** Resolves when all have ended, or after `ms`. */
  ended(ms: number): Promise<void>
  /** Aborts the remaining ones after their written data: clients can reconnect to another server. */
  breakOff(): void
}

export function createStreams(): Streams {
  const open = new Set<ServerResponse>()
  let idle: PromiseWithResolvers<void> | undefined

  /** One function for all responses, of which there may be thousands. */
  function closed(this: ServerResponse): void {
    open.delete(this)
    if (open.size === 0) idle?.resolve()
  }

  return {
    get size() {
      return open.size
    },
    add(outgoing) {
      if (outgoing.destroyed) return
      open.add(outgoing)
      // A response closes only once.
      outgoing.on('close', closed)
    },
    async ended(ms) {
      if (open.size === 0) return
      idle = Promise.withResolvers()
      const over = new AbortController()
      await Promise.race([idle.promise, pause(ms, over.signal)])
      over.abort()
    },
    breakOff() {
      for (const outgoing of open) outgoing.socket?.destroySoon()
    },
  }
}
