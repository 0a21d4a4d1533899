/** Browsers send cookies with the requests of any page, so a request that a cookie vouches for must come from a page of the server itself. */
import { MillraceError } from '../../part/error.ts'

/**
 * For a request that only a cookie vouches for. Throws `forbidden` (403) unless it is a GET or HEAD, or the browser says that its page is of the same
 * origin, or of one of `allowedOrigins`. A program that keeps cookies must send `Origin` itself, or use a key.
 */
export function checkSameOrigin(
  { method, headers }: { method: string; headers: Headers },
  allowedOrigins: ReadonlySet<string> = new Set(),
): void {
  if (method === 'GET' || method === 'HEAD') return
  const origin = headers.get('origin')
  if (origin !== null && allowedOrigins.has(origin)) return
  const site = headers.get('sec-fetch-site')
  // Only browsers can set it, and it is right behind proxies that change `Host`. They leave it out without https.
  if (site === 'same-origin') return
  const host = headers.get('host')?.toLowerCase()
  if (site === null && origin !== null && host !== undefined && URL.parse(origin)?.host === host) return
  throw new MillraceError('forbidden', 'Pages of other sites may not use your session here.', { status: 403 })
}
