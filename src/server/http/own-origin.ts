/** The address of this server as browsers see it. */
import { isHere } from '../access/cookie.ts'

/** `known`: from the config. A proxy that ends TLS asks with http, so a request does not say it. */
export function ownOrigin(headers: Headers, known: string | undefined): string {
  const host = URL.parse(`http://${headers.get('host') ?? ''}`)?.host ?? 'localhost'
  return known === undefined ? `${isHere(headers) ? 'http' : 'https'}://${host}` : new URL(known).origin
}

/** Headers as the browser has sent them: a proxy may ask with another host. */
export function asBrowserSent(headers: Headers, known: string | undefined): Headers {
  if (known === undefined) return headers
  const all = new Headers(headers)
  all.set('host', new URL(known).host)
  return all
}
