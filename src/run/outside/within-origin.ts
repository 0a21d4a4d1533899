/**
 * `fetch` that follows redirects within an origin only. `fetch` itself takes `authorization` off a request that goes to
 * another origin, but neither `x-api-key` and the like nor the body: a redirect would hand keys and prompts to a stranger.
 */
import { MillraceError } from '../../part/error.ts'

type Ask = (url: string, init: RequestInit) => Promise<Response>

/** As many as browsers follow. */
const most = 20
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** `ask` must not follow redirects itself: it is given `redirect: 'manual'`. Rejects with `redirect-refused`. */
export async function fetchWithinOrigin(ask: Ask, url: string, init: RequestInit, who: string): Promise<Response> {
  let at = url
  let request: RequestInit = { ...init, redirect: 'manual' }
  for (let followed = 0; ; followed++) {
    const response = await ask(at, request)
    const location = response.headers.get('location')
    const isHidden = response.type === 'opaqueredirect'
    if (!isHidden && (!redirects.has(response.status) || location === null)) return response
    response.body?.cancel().catch(() => undefined)
    const target = location === null ? null : URL.parse(location, at)
    if (target === null || target.origin !== new URL(at).origin) throw refused(who, at, target)
    if (followed === most) {
      throw new MillraceError('redirect-refused', `${who} redirected a request more than ${most} times.`)
    }
    request = afterRedirect(response.status, request)
    at = target.href
  }
}

/** Both origins are in the detail: clients are not told addresses. Paths and queries may hold secrets. */
function refused(who: string, from: string, to: URL | null): MillraceError {
  const message =
    `${who} redirects to another origin, where keys and prompts are not sent. ` +
    'Give the address that it redirects to in the config, if that is right.'
  const target = to === null ? 'an unknown address' : to.origin
  return new MillraceError('redirect-refused', message, { detail: `from ${new URL(from).origin} to ${target}` })
}

/** As `fetch` does it: these statuses turn a POST into a GET. */
function afterRedirect(status: number, init: RequestInit): RequestInit {
  const method = init.method?.toUpperCase() ?? 'GET'
  const becomesGet = status === 303 ? method !== 'GET' && method !== 'HEAD' : status < 303 && method === 'POST'
  if (!becomesGet) return init
  const { body: _, ...rest } = init
  const headers = new Headers(init.headers)
  for (const name of ['content-type', 'content-length', 'content-encoding', 'content-language']) headers.delete(name)
  return { ...rest, method: 'GET', headers }
}
