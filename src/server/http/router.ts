/**
 * Hono, with its router for any set of routes. That router walks a tree for each request. Most requests go to a few paths without parameters, so
 * their results are cached.
 */
import type { Hono } from 'hono'
import { HonoBase } from 'hono/hono-base'
import type { Result, Router } from 'hono/router'
import { TrieRouter } from 'hono/router/trie-router'
import type { BlankSchema } from 'hono/types'
import type { RequestContext } from '../handler-context.ts'
import { isPagePath } from '../routes/page.ts'
import { metadataPath } from '../mcp/resource-metadata.ts'
import type { Socket } from 'node:net'

/** Handlers get the context of the caller. */
export interface AppEnv {
  Bindings: { context: RequestContext }
}

export type App = Hono<AppEnv>

export function createApp(): App {
  return new HonoBase<AppEnv, BlankSchema, '/'>({ router: new KeepingRouter() })
}

class KeepingRouter<T> implements Router<T> {
  readonly name = 'KeepingRouter'
  readonly #tree = new TrieRouter<T>()
  /** Paths of routes; those with parameters match no request. */
  readonly #paths = new Set<string>()
  /** By method and path: at most one per route. */
  readonly #found = new Map<string, Result<T>>()

  add(method: string, path: string, handler: T): void {
    this.#tree.add(method, path, handler)
    this.#paths.add(path)
    this.#found.clear()
  }

  match(method: string, path: string): Result<T> {
    const asked = `${method} ${path}`
    const known = this.#found.get(asked)
    if (known !== undefined) return known
    const found = this.#tree.match(method, path)
    if (found[0].length > 0 && this.#paths.has(path)) this.#found.set(asked, found)
    return found
  }
}

/** Classifies requests by path, before routing. */
const starts =
  /^\/(?:api\/(?:beddel\/)?chat|api\/runs|api\/runs\/[^/]+\/fork|(?:api\/)?v1\/(?:chat\/)?completions|v1\/(?:responses|messages)|ag-ui\/[^/]+)$/u
const streams =
  /^\/(?:api\/chat\/[^/]+\/stream|api\/(?:events|live|tests\/progress)|api\/runs\/[^/]+\/(?:events|replay)|v1\/responses\/[^/]+|ag-ui\/[^/]+\/connect)$/u

/** Requests that may start a run. */
export function startsRun(method: string, path: string): boolean {
  return method === 'POST' && starts.test(path)
}

/** Requests that may be answered by a stream. */
export function mayStream(method: string, path: string): boolean {
  if (method === 'GET') return streams.test(path)
  return startsRun(method, path) && path !== '/api/runs' && !path.endsWith('/fork')
}

function isHealthPath(path: string): boolean {
  return path === '/health' || path === '/health/live'
}

/** Requests of monitors. They are served until the server has closed. */
export function isMonitorPath(path: string): boolean {
  return isHealthPath(path) || path === '/metrics'
}

/** Paths that need no key. Without one, the page at `/` shows no agents. `/auth/ways` and {@link metadataPath} say how to sign in. */
export function isOpen(path: string, method: string, hasPage: boolean): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  const isPublic = path === '/' || path === '/auth/ways' || path === metadataPath
  return isHealthPath(path) || isPublic || (hasPage && isPagePath(path))
}

const statusLines = new Map([
  ['HPE_HEADER_OVERFLOW', '431 Request Header Fields Too Large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', '408 Request Timeout'],
])

/** Answers malformed HTTP, oversized headers and timeouts. */
export function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const status = statusLines.get(error.code ?? '') ?? '400 Bad Request'
  const value = { message: `${status.slice(4)}.`, code: 'bad-request', type: 'invalid_request_error' }
  const body = JSON.stringify({ error: value })
  const head = `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json`
  socket.end(`${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
}
