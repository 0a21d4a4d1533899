/**
 * Whether a request comes from a page of another site: a keyless server on this machine trusts whoever sits at it, not
 * whatever their browser is shown. Programs send no `Origin`; pages of this machine (a development server) may ask.
 */
export function foreignFault(host: string | undefined, origin: string | undefined): string | undefined {
  if (host !== undefined && !isLoopback(`http://${host}`)) {
    return `This server answers as localhost only, not as ${host}. Set MILLRACE_API_KEY to serve other names.`
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
