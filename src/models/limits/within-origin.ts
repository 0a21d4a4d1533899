/**
 * `fetch` that only follows redirects within the same origin. On a cross-origin redirect, plain `fetch` drops `authorization`, but
 * keeps `x-api-key` and the like and the body: another server would get keys and prompts.
 */
import { MillraceError } from '../../part/error.ts'

/** The fields that identify a redirect. */
interface CheckedHead {
  status: number
  headers: Headers
  type?: string
}

/** Maximum number of redirects, as in browsers. */
const most = 20
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** `ask` must honour `redirect: 'manual'`; `discard` drops the body of a redirect. Rejects with `redirect-refused`. */
export async function fetchWithinOrigin<T extends CheckedHead>(
  ask: (url: string, init: RequestInit) => Promise<T>,
  discard: (redirect: T) => void,
  url: string,
  init: RequestInit,
  who: string,
): Promise<T> {
  let at = url
  let request: RequestInit = { ...init, redirect: 'manual' }
  for (let followed = 0; ; followed++) {
    const response = await ask(at, request)
    const location = response.headers.get('location')
    const isHidden = response.type === 'opaqueredirect'
    if (!isHidden && (!redirects.has(response.status) || location === null)) return response
    discard(response)
    const target = location === null ? null : URL.parse(location, at)
    if (target === null || target.origin !== new URL(at).origin) throw refused(who, at, target)
    if (followed === most) {
      throw new MillraceError('redirect-refused', `${who} redirected a request more than ${most} times.`)
    }
    request = afterRedirect(response.status, request)
    at = target.href
  }
}

/** The origins are only in `detail`, because clients must not see addresses. Paths and queries may contain secrets. */
function refused(who: string, from: string, to: URL | null): MillraceError {
  const message =
    `${who} redirects to another origin. Keys and prompts are not sent there. ` +
    'If you trust that server, put its address in the config.'
  const target = to === null ? 'an unknown address' : to.origin
  return new MillraceError('redirect-refused', message, { detail: `from ${new URL(from).origin} to ${target}` })
}

/** As in `fetch`, some statuses turn a POST into a GET. */
function afterRedirect(status: number, init: RequestInit): RequestInit {
  const method = init.method?.toUpperCase() ?? 'GET'
  const becomesGet = status === 303 ? method !== 'GET' && method !== 'HEAD' : status < 303 && method === 'POST'
  if (!becomesGet) return init
  const { body: _, ...rest } = init
  const headers = new Headers(init.headers)
  for (const name of ['content-type', 'content-length', 'content-encoding', 'content-language']) headers.delete(name)
  return { ...rest, method: 'GET', headers }
}

export function discardBody({ body }: Response): void {
  body?.cancel().catch(() => undefined)
}
