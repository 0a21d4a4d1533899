/**
 * Refuses requests from pages of other sites. A local server without a key trusts its user, but not the pages that the user
 * visits. Programs send no `Origin`; pages of this machine (a development server) are allowed. Requests for images,
 * scripts and links carry no `Origin`, but browsers mark them with `Sec-Fetch-Site`.
 */
import { isLoopback } from './loopback.ts'

export interface Sender {
  host?: string | undefined
  origin?: string | undefined
  site?: string | undefined
}

export function foreignFault({ host, origin, site }: Sender, allowedOrigins?: ReadonlySet<string>): string | undefined {
  if (host !== undefined && !isHere(`http://${host}`)) {
    return `This server accepts requests to localhost only, not to ${host}. Set MILLRACE_API_KEY to serve other host names.`
  }
  const cure =
    'Set MILLRACE_API_KEY and serve both from one origin, or add the origin of the page to server.allowedOrigins.'
  // Browsers treat localhost and 127.0.0.1 as two sites, so `Origin` decides when it is present.
  if (origin === undefined && site === 'cross-site') return `Pages of other sites must not use this server. ${cure}`
  if (origin === undefined || isHere(origin) || allowedOrigins?.has(origin) === true) return undefined
  return `Pages of ${origin} must not use this server. ${cure}`
}

/** The last URL found to be local: most requests have the same one. */
let lastHere: string | undefined

function isHere(url: string): boolean {
  if (url === lastHere) return true
  const hostname = URL.parse(url)?.hostname
  if (hostname === undefined || !(isLoopback(hostname) || hostname.endsWith('.localhost'))) return false
  lastHere = url
  return true
}
