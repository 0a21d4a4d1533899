/**
 * Socket.IO beside the HTTP routes, on the same port: polling requests and WebSocket upgrades under `/socket.io/`. The package is loaded lazily,
 * because it takes as long to load as the rest of the server.
 */
import type { IncomingHttpHeaders, IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { MillraceError } from '../../part/error.ts'
import { errorResponse } from '../../delivery/http-error.ts'
import { originFault, isOtherPage, type Sender } from '../http/origin-check.ts'
import type { SocketOptions } from './socket-context.ts'
import type { SocketCounts, SocketServer } from './socket-server.ts'

export interface SocketListener {
  /** For `createServer`: other upgrades (`h2c`, which some clients offer with every request) stay ordinary requests. */
  shouldUpgradeCallback(request: IncomingMessage): boolean
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Handles requests for Socket.IO and passes the rest to `next`. */
  before(next: RequestListener): RequestListener
  /** Sends every client the new list of agents. */
  announceAgents(): void
  /** Polling clients reconnect for every message, so the port must stay open until they have received the end of their runs. */
  isPolled(): boolean
  counts(): SocketCounts
  /** Resolves when no run is followed any more, or after `ms`. */
  ended(ms: number): Promise<void>
  /** Gives clients a moment to receive the sent data, then disconnects them. Call it once the runs have ended. */
  close(): Promise<void>
}

/** ms that clients have to close their connections. */
const goodbyeMs = 300

const none: SocketCounts = { sockets: 0, polling: 0, runs: 0, starting: 0, waiting: 0 }

export function createSocketListener(options: SocketOptions): SocketListener {
  const { onError, access, asksWho, localOnly, allowedOrigins, draining = () => undefined } = options
  const origins = new Set(allowedOrigins)
  /** Connections that are no longer the HTTP server's. */
  const upgraded = new Set<Duplex>()
  let loading: Promise<SocketServer> | undefined
  let server: SocketServer | undefined
  let isClosed = false

  function load(): Promise<SocketServer> {
    return (loading ??= import('./socket-server.ts').then(({ createSocketServer }) => {
      server = createSocketServer(options)
      if (isClosed) void server.close()
      return server
    }))
  }

  function refusalOf({ headers, rawHeaders, url = '' }: IncomingMessage): MillraceError | undefined {
    // Connected clients continue polling, or change their transport.
    const drained = /[?&]sid=/u.test(url) ? undefined : draining()
    if (drained !== undefined) return drained
    // A session cookie is sent by any page: only a token shows that the page knows the user.
    if (asksWho && !(access.readsCookies && headers.cookie !== undefined)) return undefined
    const { host, origin } = headers
    const sender = { host, origin, site: headers['sec-fetch-site'] as string | undefined }
    const names = rawHeaders.filter((_, i) => i % 2 === 0)
    const fault = localOnly ? originFault({ ...sender, names }, origins) : otherPageFault(sender, headers, origins)
    return fault === undefined ? undefined : new MillraceError('forbidden', fault)
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const error = refusalOf(request)
    if (error !== undefined) {
      const refused = errorResponse(error)
      const headers = { ...Object.fromEntries(refused.headers), ...(refused.status === 503 && { connection: 'close' }) }
      response.writeHead(refused.status, headers).end(await refused.text())
      return
    }
    const { handle } = server ?? (await load())
    handle(request, response)
  }

  async function connect(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const refused = refusalOf(request)
    if (refused !== undefined) {
      const line = refused.status === 503 ? '503 Service Unavailable\r\nretry-after: 1' : '403 Forbidden'
      return void socket.end(`HTTP/1.1 ${line}\r\nconnection: close\r\n\r\n${refused.message}`)
    }
    const { upgrade } = server ?? (await load())
    upgrade(request, socket, head)
  }

  return {
    shouldUpgradeCallback: (request) => isOurs(request) && /^websocket$/iu.test(request.headers.upgrade ?? ''),
    upgrade(request, socket, head) {
      socket.on('error', () => socket.destroy())
      upgraded.add(socket)
      socket.once('close', () => upgraded.delete(socket))
      // Only before Node 24.9, which lacks `shouldUpgradeCallback`.
      if (!isOurs(request)) return void socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n')
      connect(request, socket, head).catch((error: unknown) => {
        onError(error)
        socket.destroy()
      })
    },
    before: (next) => (request, response) => {
      if (!isOurs(request)) return next(request, response)
      answer(request, response).catch((error: unknown) => {
        onError(error)
        response.destroy()
      })
    },
    announceAgents: () => server?.announceAgents(),
    isPolled: () => (server?.counts().polling ?? 0) > 0,
    counts: () => server?.counts() ?? none,
    async ended(ms) {
      const enough = performance.now() + ms
      while ((server?.counts().runs ?? 0) > 0 && performance.now() < enough)
        await new Promise((done) => setTimeout(done, 10))
    },
    async close() {
      isClosed = true
      await server?.close()
      // Clients close their side. Unresponsive ones must not keep the process alive.
      const enough = performance.now() + goodbyeMs
      while (upgraded.size > 0 && performance.now() < enough) await new Promise((done) => setTimeout(done, 10))
      for (const socket of upgraded) socket.destroy()
    },
  }
}

/**
 * Refuses pages of other sites on a server without authentication: browsers let them open a WebSocket and read it, unlike HTTP responses. Behind a
 * proxy, the page's host is the proxy's.
 */
function otherPageFault(
  sender: Sender,
  { 'x-forwarded-host': forwarded }: IncomingHttpHeaders,
  allowed: ReadonlySet<string>,
): string | undefined {
  const { origin } = sender
  if (origin !== undefined && allowed.has(origin)) return undefined
  const host = typeof forwarded === 'string' ? forwarded : sender.host
  if (!isOtherPage({ ...sender, host })) return undefined
  return `Pages of ${origin ?? 'other sites'} must not use this server. Add the origin of the page to server.allowedOrigins.`
}

function isOurs({ url = '' }: IncomingMessage): boolean {
  // Without the trailing slash Engine.IO ignores it, and would never respond.
  return url.startsWith('/socket.io/')
}
