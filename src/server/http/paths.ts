/** What a path says of a request, before its route is known. */
import { isPagePath } from '../routes/page.ts'

const starts =
  /^\/(?:api\/(?:beddel\/)?chat|api\/runs|api\/runs\/[^/]+\/fork|(?:api\/)?v1\/(?:chat\/)?completions|ag-ui\/[^/]+)$/u
const streams =
  /^\/(?:api\/chat\/[^/]+\/stream|api\/(?:events|live)|api\/runs\/[^/]+\/(?:events|replay)|ag-ui\/[^/]+\/connect)$/u

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

/** Requests of monitors. They are answered until the server has closed. */
export function isMonitorPath(path: string): boolean {
  return isHealthPath(path) || path === '/metrics'
}

/** Paths that need no key. Without one, the page at `/` shows no agents. */
export function isOpen(path: string, method: string, hasPage: boolean): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  return isHealthPath(path) || path === '/' || (hasPage && isPagePath(path))
}
