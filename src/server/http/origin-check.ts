/**
 * Refuses requests from elsewhere. A local server without a key trusts users of this machine, but not the pages that they visit, and not requests
 * through a proxy or a tunnel. Programs send no `Origin`; pages of this machine (a development server) are allowed. Requests for images, scripts
 * and links carry no `Origin`, but browsers mark them with `Sec-Fetch-Site`. Proxies add their own headers.
 */
import { isLoopback } from '../../part/loopback.ts'

export interface Sender {
  host?: string | undefined
  origin?: string | undefined
  site?: string | undefined
  /** The names of all headers, in any case. */
  names?: Iterable<string>
}

export function senderOf(headers: Headers): Sender {
  const of = (name: string) => headers.get(name) ?? undefined
  return { host: of('host'), origin: of('origin'), site: of('sec-fetch-site') }
}

export function originFault(
  { host, origin, site, names = [] }: Sender,
  allowedOrigins?: ReadonlySet<string>,
): string | undefined {
  for (const name of names) {
    if (!forwarding.test(name)) continue
    const why = `it has the header ${name.slice(0, 40)}, and without a key this server is for this machine only`
    return `This request was forwarded by a proxy: ${why}. Set MILLRACE_API_KEY to serve others, who then send it with each request.`
  }
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

/** Headers that proxies and tunnels add. Browsers and programs send none of them. */
const forwarding = /^(?:forwarded|via|x-real-ip|x-forwarded(?:-.*)?)$/iu

/** Whether the request comes from a page of another server. `Host` is the host that the browser requested. */
export function isOtherPage({ host, origin, site }: Sender): boolean {
  if (origin !== undefined) return host === undefined || URL.parse(origin)?.host !== host.toLowerCase()
  return site !== undefined && site !== 'same-origin' && site !== 'none'
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
