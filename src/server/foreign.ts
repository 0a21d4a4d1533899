/**
 * Whether a request comes from a page of another site: a keyless server on this machine trusts whoever sits at it, not
 * whatever their browser is shown. Programs send no `Origin`; pages of this machine (a development server) may ask. Images,
 * scripts and links of a page come without an `Origin`: browsers tell them by `Sec-Fetch-Site`.
 */
import { isLoopback } from './loopback.ts'

export interface Sender {
  host?: string | undefined
  origin?: string | undefined
  site?: string | undefined
}

export function foreignFault({ host, origin, site }: Sender, allowedOrigins?: ReadonlySet<string>): string | undefined {
  if (host !== undefined && !isHere(`http://${host}`)) {
    return `This server answers as localhost only, not as ${host}. Set MILLRACE_API_KEY to serve other names.`
  }
  const cure = 'Set MILLRACE_API_KEY and put both behind one address, or name its origin in server.allowedOrigins.'
  // To browsers localhost and 127.0.0.1 are two sites: an origin that is told decides.
  if (origin === undefined && site === 'cross-site') return `Pages of other sites may not use this server. ${cure}`
  if (origin === undefined || isHere(origin) || allowedOrigins?.has(origin) === true) return undefined
  return `Pages of ${origin} may not use this server. ${cure}`
}

/** The last one that was found here: they are all the same, request for request. */
let lastHere: string | undefined

function isHere(url: string): boolean {
  if (url === lastHere) return true
  const hostname = URL.parse(url)?.hostname
  if (hostname === undefined || !(isLoopback(hostname) || hostname.endsWith('.localhost'))) return false
  lastHere = url
  return true
}
