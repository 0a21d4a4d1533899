/**
 * Where a person signs in to an MCP server for a run that waits for it.
 *
 * - `GET /mcp/connect/<request>` sends the browser of whoever has started the run to the authorization server. `POST` answers its address as JSON, for
 *   pages that send a key.
 * - `GET /mcp/connect/callback` is where the authorization server sends it back to. It asks for no credential: a sealed cookie says who began.
 * - `GET /mcp/connect/client` says who we are, for authorization servers that read it (client id metadata document).
 */
import { MillraceError, toErrorValue } from '../../part/error.ts'
import { parseJson } from '../../part/json.ts'
import { timeOf } from '../../part/log.ts'
import { readKept } from '../../fold/read-view.ts'
import { signInReason } from '../../part/sign-in-request.ts'
import { clientMetadata } from '../../tools/mcp/auth/client-metadata.ts'
import type { Flow, SignIns } from '../../tools/mcp/auth/sign-ins.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { createCookieSeal, longestCookie } from '../access/cookie-seal.ts'
import { readCookie, writeCookie } from '../access/cookie.ts'
import type { HandlerContext, RequestContext } from '../handler-context.ts'
import { asBrowserSent, ownOrigin } from '../http/own-origin.ts'
import { personPage } from '../http/person-page.ts'
import type { Routes } from '../http/routes.ts'

export const connectFolder = '/mcp/connect/'
const [callbackPath, clientPath] = [`${connectFolder}callback`, `${connectFolder}client`]
/** s. */
const longestFlow = 600

type Asked = Pick<Request, 'method' | 'headers' | 'url'>

export interface McpConnect {
  /** What is open to everybody. Undefined for other paths. */
  open(request: Asked, path: string): Promise<Response> | undefined
  begin(context: RequestContext, request: Asked, requestId: string): Promise<Response>
}

export interface ConnectOptions {
  runtime: Runtime
  /** `server.publicUrl`. */
  publicUrl: string | undefined
  onError: (error: unknown) => void
}

/** What the browser keeps. */
interface Kept {
  flow: Flow
  run: string
}

interface SignInRequest {
  run: string
  server: string
  caller: { id: string; tenant?: string } | undefined
}

export function createMcpConnect({ runtime, publicUrl, onError }: ConnectOptions): McpConnect | undefined {
  const { signIns, store } = runtime
  if (signIns === undefined) return undefined
  const seal = createCookieSeal(store.log, 'mcp-connect', () => timeOf(store))
  const isPublic = publicUrl?.startsWith('https://') === true
  const clientDocument = isPublic ? new URL(publicUrl).origin + clientPath : undefined

  /** The request of a run that waits. Throws what an id that nobody has gets, unless the caller has started the run. */
  async function requestOf({ principal }: RequestContext, requestId: string): Promise<SignInRequest> {
    const unknown = new MillraceError('unknown-request', 'Nobody is asked to sign in here.', {
      status: 404,
    })
    const run = /^(.{1,300})\.\d+\.\d+$/u.exec(requestId)?.[1]
    const row = run === undefined ? undefined : await store.runs.get(run)
    if (row === undefined || (row.owner ?? '') !== principal.id || (row.tenant ?? '') !== (principal.tenant ?? '')) {
      throw unknown
    }
    const kept = await readKept(store, row.id)
    const request = kept?.requests.find((each) => each.requestId === requestId)
    if (request?.kind !== 'input' || request.reason !== signInReason) throw unknown
    const server = request.metadata?.['server']
    if (typeof server !== 'string') throw unknown
    const { id, tenant } = principal
    return { run: row.id, server, caller: id === '' ? undefined : { id, ...(tenant !== undefined && { tenant }) } }
  }

  /** All that the run asks for this server are answered: there is one sign-in. */
  async function answer(run: string, server: string, caller: SignInRequest['caller'], isDone: boolean): Promise<void> {
    const kept = await readKept(store, run)
    for (const request of kept?.requests ?? []) {
      if (request.kind !== 'input' || request.reason !== signInReason) continue
      if (request.metadata?.['server'] !== server) continue
      const reply = isDone
        ? ({ kind: 'input', value: { signedIn: true } } as const)
        : ({ kind: 'input', cancelled: true } as const)
      await runtime.answer(run, request.requestId, reply, { protocol: 'page', ...(caller && { by: caller }) })
    }
  }

  async function finish(request: Asked): Promise<Response> {
    const headers = asBrowserSent(request.headers, publicUrl)
    const url = new URL(request.url)
    const name = cookieOf(url.searchParams.get('state') ?? '')
    const over = writeCookie({ headers }, name, '', 0)
    const sealed = readCookie({ headers }, name)
    const opened = sealed === undefined ? undefined : await seal.open(sealed)
    if (opened === undefined) return page(400, 'This sign-in has taken too long, or it began in another window.', over)
    const { flow, run } = parseJson(opened.text) as Kept
    const { server, caller } = flow
    const person =
      caller.id === '' ? undefined : { id: caller.id, ...(caller.tenant !== '' && { tenant: caller.tenant }) }
    try {
      await signIns!.finish(flow, url)
    } catch (error) {
      if (error instanceof MillraceError && error.code === 'sign-in-declined') {
        await answer(run, server, person, false)
        return page(403, 'The sign-in was declined. You can close this window.', over)
      }
      onError(error)
      return page(400, 'The sign-in failed. Go back to where it began, and try again.', over)
    }
    await answer(run, server, person, true)
    return page(200, 'You are signed in. You can close this window.', over)
  }

  return {
    open(request, path) {
      if (request.method !== 'GET') return undefined
      if (path === callbackPath) return finish(request)
      if (path !== clientPath) return undefined
      if (clientDocument === undefined) return Promise.resolve(page(404, 'This server has no public address.'))
      const document = { client_id: clientDocument, ...clientMetadata(new URL(publicUrl!).origin + callbackPath) }
      return Promise.resolve(Response.json(document, { headers: { 'cache-control': 'public, max-age=3600' } }))
    },

    async begin(context, request, requestId) {
      const { run, server, caller } = await requestOf(context, requestId)
      const isPage = request.method === 'GET'
      if (await isSignedIn(signIns, server, caller)) {
        await answer(run, server, caller, true)
        return isPage ? page(200, 'You are signed in. You can close this window.') : Response.json({ signedIn: true })
      }
      const headers = asBrowserSent(request.headers, publicUrl)
      const redirectUri = ownOrigin(headers, publicUrl) + callbackPath
      const found = await signIns
        .begin({ server, caller, redirectUri, clientDocument })
        .catch((error: unknown) => error as Error)
      if (found instanceof Error) {
        onError(found)
        if (!isPage) throw found
        return page(502, toErrorValue(found).message)
      }
      const { address, flow } = found
      const sealed = await seal.seal(JSON.stringify({ flow, run } satisfies Kept))
      if (sealed.length > longestCookie) {
        const message = 'The client that the authorization server has registered is too long for a cookie.'
        throw new MillraceError('mcp-unauthorized', `${message} Set clientId in the config.`, { status: 502 })
      }
      const cookie = writeCookie({ headers }, cookieOf(flow.state), sealed, longestFlow)
      const more = { 'set-cookie': cookie, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }
      if (!isPage) return Response.json({ url: address }, { headers: more })
      return new Response(null, { status: 303, headers: { location: address, ...more } })
    },
  }
}

export function mountMcpConnect(routes: Routes, { connect }: HandlerContext): void {
  if (connect === undefined) return
  routes.get('/mcp/connect/:state', 'runs.answer', (context, request) =>
    connect.begin(context, request.raw, request.param('state')),
  )
  routes.post('/mcp/connect/:state', 'runs.answer', (context, request) =>
    connect.begin(context, request.raw, request.param('state')),
  )
}

async function isSignedIn(signIns: SignIns, server: string, caller: SignInRequest['caller']): Promise<boolean> {
  try {
    await (await signIns.source(server, caller)).token()
    return true
  } catch {
    return false
  }
}

/** Of its own for each sign-in: a browser may be at several. */
function cookieOf(state: string): string {
  return `millrace_connect_${state.replaceAll(/[^\w-]/gu, '').slice(0, 12)}`
}

/** For a person. Nothing of the request is in it. */
function page(status: number, message: string, cookie?: string): Response {
  const text = message.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return personPage(status, `<p>${text}</p>`, cookie)
}
