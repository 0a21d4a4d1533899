/**
 * Whether a request comes from a page of another site: a keyless server on this machine trusts whoever sits at it, not
 * whatever their browser is shown. Programs send no `Origin`; pages of this machine (a development server) may ask. Images,
 * scripts and links of a page come without an `Origin`: browsers tell them by `Sec-Fetch-Site`.
 */
export function foreignFault(host?: string, origin?: string, site?: string): string | undefined {
  if (host !== undefined && !isLoopback(`http://${host}`)) {
    return `This server answers as localhost only, not as ${host}. Set MILLRACE_API_KEY to serve other names.`
  }
  // To browsers localhost and 127.0.0.1 are two sites: an origin that is told decides.
  if (origin === undefined && site === 'cross-site') {
    return 'Pages of other sites may not use this server. Set MILLRACE_API_KEY and put both behind one address.'
  }
  if (origin === undefined || isLoopback(origin)) return undefined
  return `Pages of ${origin} may not use this server. Set MILLRACE_API_KEY and put both behind one address.`
}

function isLoopback(url: string): boolean {
  if (!URL.canParse(url)) return false
  const { hostname } = new URL(url)
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127(?:\.\d{1,3}){3}$/u.test(hostname)
  )
}
