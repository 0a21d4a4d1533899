/** Cookies of ours: read from a request, written for a response, and who may use them. */
import { isLoopback } from '../../part/loopback.ts'
import { isOtherPage, senderOf } from '../http/origin-check.ts'
import type { AccessRequest } from './access.ts'
import { otherPage } from './refusals.ts'

type Asked = Pick<AccessRequest, 'headers'>

/** With `Secure`, no other host of the domain can set it. */
const hostPrefix = '__Host-'

export function readCookie({ headers }: Asked, name: string): string | undefined {
  const given = headers.get('cookie')
  if (given === null) return undefined
  const wanted = nameOf(name, headers)
  for (const pair of given.split(';')) {
    const at = pair.indexOf('=')
    if (at > 0 && pair.slice(0, at).trim() === wanted) return pair.slice(at + 1).trim()
  }
  return undefined
}

/** `maxAge` in seconds; 0 deletes it. */
export function writeCookie({ headers }: Asked, name: string, value: string, maxAge: number): string {
  const secure = isHere(headers) ? '' : '; Secure'
  return `${nameOf(name, headers)}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${secure}`
}

function nameOf(name: string, headers: Headers): string {
  return isHere(headers) ? name : hostPrefix + name
}

/** Browsers keep no `Secure` cookie of plain http, and a server on this machine has no other. */
export function isHere(headers: Headers): boolean {
  const hostname = URL.parse(`http://${headers.get('host') ?? ''}`)?.hostname
  return hostname !== undefined && isLoopback(hostname) && !headers.has('x-forwarded-proto')
}

/** Whether the request may change something. */
function changes(method: string): boolean {
  return !['GET', 'HEAD', 'OPTIONS'].includes(method)
}

/** Like `checkSameOrigin`, for sessions of the application, whose programs may send its cookies without an origin. */
export function checkOtherPage(
  { headers, method }: Pick<AccessRequest, 'headers' | 'method'>,
  allowed: ReadonlySet<string>,
): void {
  if (!changes(method) || !headers.has('cookie')) return
  const sender = senderOf(headers)
  // No page can set this itself, and a proxy may have changed the host.
  if (sender.site === 'same-origin') return
  if (isOtherPage(sender) && !(sender.origin !== undefined && allowed.has(sender.origin))) throw otherPage()
}
