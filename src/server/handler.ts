/**
 * The HTTP server as one function, `(Request) => Promise<Response>`. It uses Web APIs only, so it runs in Node, Next.js, Hono,
 * Bun and Deno. Each group of routes has its own file.
 */
import { defaultKeepAliveMs } from '../delivery/open-delivery.ts'
import { getPath } from 'hono/utils/url'
import { checkKey } from '../part/check-key.ts'
import { MillraceError } from '../part/error.ts'
import { wireRegistry } from '../project/packs.ts'
import type { Permit } from '../part/limits.ts'
import { onAnswerEnd, withoutBody } from '../delivery/light-response.ts'
import { createRequestCount } from './http/count-requests.ts'
import { createCors } from './http/cors.ts'
import { createEditing } from './http/editing.ts'
import { originFault, senderOf } from './http/origin-check.ts'
import { createKeyCheck } from './http/key.ts'
import { mountAgents } from './routes/agents.ts'
import { homeResponse } from './routes/home.ts'
import { isLostVisit, isPagePath, mountPage, shellResponse } from './routes/page.ts'
import { talkRoutes, runRoutes } from './routes/mounts.ts'
import { errorResponse } from '../delivery/http-error.ts'
import { addressOf, asGet, realRequest, responseTo } from './http/incoming-request.ts'
import { noteExecution, waitUntilOf } from './http/wait-until.ts'
import { createApp, isMonitorPath, isOpen, mayStream, startsRun } from './http/router.ts'
import { isOpenAiPath, openAiError } from './openai/error.ts'
import { unknownRoute } from './routes/unknown-route.ts'
import { version } from './version.ts'
import type { Handler, HandlerContext, HandlerOptions } from './handler-context.ts'
import { listedAgents } from '../runtime/runtime-errors.ts'

/**
 * Serves all routes (`/api/chat`, `/v1/chat/completions`, `/api/runs` …, `/health`) over one runtime. Conversations and runs are shown only with
 * `apiKey`, `authorize` or `localOnly`: otherwise the routes that show any refuse, and those under `/api/runs` do not exist.
 */
export function createHandler(options: HandlerOptions): Handler {
  return assemble(options).handler
}

/** The handler and its routes, for a test of every route. */
export function assemble(options: HandlerOptions): { handler: Handler; routes: { method: string; path: string }[] } {
  const {
    runtime,
    apiKey,
    authorize,
    localOnly = false,
    maxBodyBytes = 4 * 1024 * 1024,
    keepAliveMs = defaultKeepAliveMs(),
  } = options
  const { admission, draining = () => undefined } = options
  const { agentErrors = () => [], onError = () => undefined, openai = {}, protocol = 'api' } = options
  const { wires = new Map(Object.entries(wireRegistry)), sockets = false, onAgents } = options
  const editing = createEditing({ ...options, ownPageOnly: localOnly })
  // With an empty key every request would be refused.
  if (apiKey) checkKey(apiKey, 'apiKey')
  const limits = { maxBodyBytes, keepAliveMs }
  const began = performance.now()
  const app = createApp()
  const requests = createRequestCount(app)
  const metrics = async () => requests.text() + ((await options.metrics?.()) ?? '')
  const { agentEditor } = options
  const allowedOrigins = new Set(options.allowedOrigins)
  const cors = createCors(allowedOrigins)
  const allowsKey = apiKey === undefined ? undefined : createKeyCheck(apiKey)
  const asksWho = allowsKey !== undefined || authorize !== undefined
  const isPrivate = asksWho || localOnly
  const waitUntil = (request: Request) => waitUntilOf(request) ?? options.waitUntil
  const shared = { isPrivate, onError, waitUntil, openai, wires, sockets, protocol, editing, agentEditor, onAgents }
  const context: HandlerContext = { runtime, ...limits, ...shared, metrics }

  const isLost = (request: Request, path: string) => options.web !== undefined && isLostVisit(app, request, path)

  async function refusal(request: Request): Promise<MillraceError | undefined> {
    if (allowsKey?.(request.headers.get('authorization')) === false) {
      return new MillraceError('unauthorized', 'Send the header Authorization: Bearer <key>.')
    }
    if (authorize === undefined || (await authorize(realRequest(request)))) return undefined
    return new MillraceError('forbidden', 'This request is not allowed here.')
  }

  function foreign(request: Request, path: string): MillraceError | undefined {
    const { headers } = request
    if (!localOnly) return undefined
    const sender = { ...senderOf(headers), names: headers.keys() }
    // A link on another site may open this page: that site cannot read it.
    if (isPagePath(path) || isLost(request, path)) sender.site = undefined
    const fault = originFault(sender, allowedOrigins)
    return fault === undefined ? undefined : new MillraceError('forbidden', fault)
  }

  function failed(error: Error): Response {
    const response = errorResponse(error)
    if (response.status >= 500) onError(error)
    return response
  }

  /** Checks access before routing: no route can be missed, and handlers run without middleware. */
  async function answer(request: Request): Promise<Response> {
    const { method } = request
    const path = getPath(request)
    // Before the first `await`: a closed connection has no address.
    const caller = admission === undefined ? '' : callerAddress(request)
    let refused: Response | undefined
    let place: Permit | undefined
    try {
      let error =
        (isMonitorPath(path) ? undefined : draining()) ??
        (!asksWho || isOpen(path, method, options.web !== undefined) || isLost(request, path)
          ? undefined
          : await refusal(request)) ??
        foreign(request, path)
      if (error === undefined && (options.admit ?? admission) !== undefined && startsRun(method, path)) {
        error = (await options.admit?.(request)) ?? (await admission?.start(caller))
      }
      if (error === undefined && admission !== undefined && mayStream(method, path)) {
        const given = await admission.stream(caller)
        if (given instanceof Error) error = given
        else place = given
      }
      if (error !== undefined) refused = isOpenAiPath(path) ? openAiError(error) : errorResponse(error)
    } catch (error) {
      refused = failed(error as Error)
    }
    const response = refused ?? (await app.fetch(method === 'HEAD' ? asGet(request) : request))
    // A response without a stream releases its place at once.
    if (place !== undefined && !onAnswerEnd(response, place.leave)) place.leave()
    return method === 'HEAD' ? withoutBody(response) : response
  }

  if (options.web !== undefined) mountPage(app, options.web)
  app.get('/', async (c) => {
    const refused = await refusal(c.req.raw)
    const isSeen = refused === undefined
    const hasRuns = app.routes.some(({ path }) => path === '/api/runs')
    return homeResponse(c.req.raw, {
      agents: isSeen ? listedAgents(runtime.agents) : { refusal: refused.message },
      faults: isSeen && isPrivate ? agentErrors().map(({ message }) => message) : [],
      key: allowsKey !== undefined,
      links: [...(isSeen ? ['/api/agents', '/v1/models', ...(hasRuns ? ['/api/runs'] : [])] : []), '/health'],
    })
  })
  app.get('/health', async () => {
    const uptime = Math.round((performance.now() - began) / 1000)
    const { reasons = [], waits = false, ...counts } = (await options.health?.()) ?? {}
    const isReady = (reasons.length === 0 || waits) && draining() === undefined
    const status = draining() ? 'draining' : reasons.length === 0 ? 'ok' : waits ? 'waiting' : 'degraded'
    const state = reasons.length > 0 ? { status, reasons } : { status }
    const body = { ...state, version, uptime, runs: { active: runtime.active }, ...counts }
    return Response.json(body, isReady ? undefined : { status: 503, headers: { 'cache-control': 'no-store' } })
  })
  mountAgents(app, context, agentErrors)
  for (const mount of talkRoutes) mount(app, context)
  if (isPrivate) {
    for (const mount of runRoutes) mount(app, context)
  }
  app.get('/health/live', () => Response.json({ status: 'ok', version }))
  app.notFound(async (c) => {
    const { path, method, raw } = c.req
    const shell = isLost(raw, path) ? await shellResponse(options.web!, 404) : undefined
    return shell ?? unknownRoute(app, path, method)
  })
  app.onError(failed)

  const handler: Handler = async (request, _env, execution) => {
    noteExecution(request, execution)
    const preflight = cors.preflight(request)
    if (preflight !== undefined) return preflight
    const began = performance.now()
    const response = await answer(request)
    // The next request of the connection should go to another server.
    if (draining() !== undefined) response.headers.set('connection', 'close')
    requests.count(request, response, began)
    return responseTo(request, cors.allow(request, response))
  }
  return { handler, routes: app.routes }
}

function callerAddress(request: Request): string {
  return addressOf(request) ?? 'an unknown address'
}
