/**
 * The HTTP server as one function, `(Request) => Promise<Response>`. It uses Web APIs only, so it runs in Node, Next.js, Hono,
 * Bun and Deno. Each group of routes has its own file.
 */
import { defaultKeepAliveMs } from '../delivery/open-delivery.ts'
import { getPath } from 'hono/utils/url'
import { checkKey } from '../part/check-key.ts'
import { MillraceError } from '../part/error.ts'
import { wireRegistry } from '../project/packs.ts'
import { timeOf } from '../part/log.ts'
import type { Permit } from '../part/limits.ts'
import { onAnswerEnd, withoutBody } from '../delivery/light-response.ts'
import { createRequestCount } from './http/count-requests.ts'
import { createCors } from './http/cors.ts'
import { createEditing } from './http/editing.ts'
import { isOtherPage, originFault, senderOf } from './http/origin-check.ts'
import { createRoutes, type Route } from './http/routes.ts'
import { contextOf, createCallers } from './access/caller.ts'
import { createSimpleAccess } from './access/simple-access.ts'
import { createStrangers } from './access/strangers.ts'
import { type Principal } from '../part/principal.ts'
import { mountAgentSettings } from './routes/agent-settings.ts'
import { mountAgents, showsBroken } from './routes/agents.ts'
import { homeResponse } from './routes/home.ts'
import { isLostVisit, isPagePath, mountPage, shellResponse } from './routes/page.ts'
import { talkRoutes, runRoutes } from './routes/mounts.ts'
import { errorResponse } from '../delivery/http-error.ts'
import { addressOf, asGet, realRequest, responseTo } from './http/incoming-request.ts'
import { noteExecution, waitUntilOf } from './http/wait-until.ts'
import { createApp, isMonitorPath, isOpen, mayStream, startsRun } from './http/router.ts'
import { isOpenAiPath, openAiError } from './openai/error.ts'
import { isMessagesRequest, messagesError } from './messages/error.ts'
import { createRenames } from './live/renames.ts'
import { isMcpPath, mcpRefusal } from './mcp/endpoint.ts'
import { createReasoningTokens } from './turn/reasoning-token.ts'
import { createMcpServices } from './mcp/settings.ts'
import { connectFolder, createMcpConnect } from './routes/mcp-connect.ts'
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
export function assemble(options: HandlerOptions): { handler: Handler; routes: readonly Route[] } {
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
  const { responses = {}, messages = {} } = options
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
  const { authenticate } = options
  const asksWho = [options.access, apiKey, authorize, authenticate].some((way) => way !== undefined)
  const now = () => timeOf(runtime.store)
  const access =
    options.access ?? createSimpleAccess({ apiKey, authorize, authenticate, allowedOrigins, now, report: onError })
  const isPrivate = asksWho || localOnly
  const waitUntil = (request: Request) => waitUntilOf(request) ?? options.waitUntil
  const { quotas } = options
  const mcp = options.mcp === false ? undefined : createMcpServices(runtime.store, options.mcp ?? {})
  const publicUrl = options.publicUrl ?? mcp?.options.publicUrl
  const connect = isPrivate ? createMcpConnect({ runtime, publicUrl, onError }) : undefined
  const shared = {
    mcp,
    connect,
    quotas,
    isPrivate,
    onError,
    waitUntil,
    openai,
    responses,
    messages,
    reasoning: createReasoningTokens(runtime.store.log),
    wires,
    sockets,
    protocol,
    editing,
    agentEditor,
    tests: options.tests,
    onAgents,
    renames: createRenames(),
  }
  const context: HandlerContext = { runtime, ...limits, ...shared, metrics }
  const callers = createCallers(runtime, access, onError)
  const contextFor = (principal: Principal, address = '', request?: Request) =>
    contextOf(context, access, {
      principal,
      runtime: callers.runtimeOf(principal),
      address,
      admission: {
        start: async () =>
          (request && (await options.admit?.(request))) ?? (await admission?.start({ principal, address })),
        stream: async () => (await admission?.stream({ principal, address })) ?? freePermit,
      },
    })

  const isLost = (request: Request, path: string) => options.web !== undefined && isLostVisit(app, request, path)

  function foreign(request: Request, path: string): MillraceError | undefined {
    const { headers } = request
    if (!localOnly) return isMcpPath(path) ? foreignPage(headers) : undefined
    const sender = { ...senderOf(headers), names: headers.keys() }
    // A link on another site may open this page: that site cannot read it.
    const isLink = path.startsWith(connectFolder) && request.method === 'GET'
    if (isPagePath(path) || isLink || isLost(request, path)) sender.site = undefined
    const fault = originFault(sender, allowedOrigins)
    return fault === undefined ? undefined : new MillraceError('forbidden', fault)
  }

  /** MCP demands it of every server: https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#security-endpoint */
  function foreignPage(headers: Headers): MillraceError | undefined {
    const sender = senderOf(headers)
    const known = sender.origin ?? ''
    if (!isOtherPage(sender) || allowedOrigins.has(known) || known === mcp?.options.publicUrl) return undefined
    const cure = 'Add the origin of the page to server.allowedOrigins.'
    return new MillraceError('forbidden', `Pages of other sites may not use /mcp. ${cure}`)
  }

  function failed(error: Error): Response {
    const response = errorResponse(error)
    if (response.status >= 500) onError(error)
    return response
  }

  const strangers = createStrangers(runtime.store, onError)

  /** Says who asks, and checks access, before routing: no route can be missed, and handlers run without middleware. */
  async function answer(request: Request): Promise<Response> {
    const { method } = request
    const path = getPath(request)
    // Before the first `await`: a closed connection has no address.
    const address = callerAddress(request)
    const cookies: string[] = []
    let refused: Response | undefined
    let place: Permit | undefined
    let principal = nobody
    try {
      const signIn = access.signIn?.(request, path)
      if (signIn !== undefined) return await signIn
      const connected = connect?.open(request, path)
      if (connected !== undefined) return await connected
      let error = isMonitorPath(path) ? undefined : draining()
      const isFree = isOpen(path, method, options.web !== undefined) || isLost(request, path)
      if (error === undefined && !isFree) principal = await identify(request, cookies)
      // The page asks for several things at once: by then its browser must have a name.
      else if (isFree && access.ways.anonymous && isPagePath(path)) await identify(request, cookies)
      error ??= foreign(request, path)
      const caller = { principal, address }
      if (error === undefined && (options.admit ?? admission) !== undefined && startsRun(method, path)) {
        error = (await options.admit?.(request)) ?? (await admission?.start(caller))
      }
      if (error === undefined && admission !== undefined && mayStream(method, path)) {
        const given = await admission.stream(caller)
        if (given instanceof Error) error = given
        else place = given
      }
      if (error !== undefined) refused = refusal(error, path, request)
    } catch (error) {
      if (error instanceof MillraceError && error.code === 'unauthorized') strangers.note(address)
      refused = error instanceof MillraceError ? refusal(error, path, request) : failed(error as Error)
    }
    const env = { context: contextFor(principal, address, request) }
    const response = refused ?? (await app.fetch(method === 'HEAD' ? asGet(request) : request, env))
    for (const cookie of cookies) response.headers.append('set-cookie', cookie)
    // A response without a stream releases its place at once.
    if (place !== undefined && !onAnswerEnd(response, place.leave)) place.leave()
    return method === 'HEAD' ? withoutBody(response) : response
  }

  function identify(request: Request, cookies: string[]): Principal | Promise<Principal> {
    return access.identify({
      method: request.method,
      headers: request.headers,
      request: () => realRequest(request),
      setCookie: (value) => void cookies.push(value),
    })
  }

  function refusal(error: MillraceError, path: string, request: Request): Response {
    if ((error.status ?? 0) >= 500) onError(error)
    if (mcp !== undefined && isMcpPath(path)) return mcpRefusal(error, mcp, request)
    if (isMessagesRequest(path, request.headers)) return messagesError(error)
    return isOpenAiPath(path) ? openAiError(error) : errorResponse(error)
  }

  if (options.web !== undefined) mountPage(app, options.web)
  const routes = createRoutes(app)
  routes.get('/', 'open', async (_context, { raw }) => {
    const found = await Promise.resolve()
      .then(() => identify(raw, []))
      .catch((error: unknown) => error as Error)
    const seen = found instanceof Error ? undefined : contextFor(found)
    const hasRuns = routes.declared.some(({ path }) => path === '/api/runs')
    return homeResponse(raw, {
      agents: seen === undefined ? { refusal: (found as Error).message } : listedAgents(seen.runtime.agents),
      faults: seen !== undefined && showsBroken(seen) ? faults() : [],
      key: access.ways.key,
      links: [...(seen ? ['/api/agents', '/v1/models', ...(hasRuns ? ['/api/runs'] : [])] : []), '/health'],
    })
  })
  const faults = () => agentErrors().map(({ message }) => message)
  routes.get('/health', 'open', async () => {
    const uptime = Math.round((performance.now() - began) / 1000)
    const { reasons = [], waits = false, ...counts } = (await options.health?.()) ?? {}
    const isReady = (reasons.length === 0 || waits) && draining() === undefined
    const status = draining() ? 'draining' : reasons.length === 0 ? 'ok' : waits ? 'waiting' : 'degraded'
    const state = reasons.length > 0 ? { status, reasons } : { status }
    const body = { ...state, version, uptime, runs: { active: runtime.active }, ...counts }
    return Response.json(body, isReady ? undefined : { status: 503, headers: { 'cache-control': 'no-store' } })
  })
  mountAgents(routes, context, agentErrors)
  mountAgentSettings(routes, context)
  for (const mount of talkRoutes) mount(routes, context)
  if (isPrivate) {
    for (const mount of runRoutes) mount(routes, context)
  }
  routes.get('/health/live', 'open', () => Response.json({ status: 'ok', version }))
  const { ways, login: oidc } = access
  routes.get('/auth/ways', 'open', () => Response.json({ ...ways, ...(oidc && { oidc }) }))
  app.notFound(async (c) => {
    const { path, method, raw } = c.req
    const shell = isLost(raw, path) ? await shellResponse(options.web!, 404) : undefined
    const respond = isMessagesRequest(path, raw.headers) ? messagesError : undefined
    return shell ?? unknownRoute(app, { path, method }, respond)
  })
  app.onError(failed)

  const handler: Handler = async (request, _env, execution) => {
    noteExecution(request, execution)
    const preflight = cors.preflight(request)
    if (preflight !== undefined) return preflight
    // Claude Code looks at each start whether somebody is there: no key, no count, no place in a limit.
    if (request.method === 'HEAD' && getPath(request) === '/api/hello') {
      return responseTo(request, new Response(null, { status: 404 }))
    }
    const began = performance.now()
    const response = await answer(request)
    // The next request of the connection should go to another server.
    if (draining() !== undefined) response.headers.set('connection', 'close')
    requests.count(request, response, began)
    return responseTo(request, cors.allow(request, response))
  }
  return { handler, routes: routes.declared }
}

const freePermit: Permit = { leave: () => undefined }

/** For routes that ask nobody. */
const nobody: Principal = { id: '', roles: [] }

function callerAddress(request: Request): string {
  return addressOf(request) ?? 'an unknown address'
}
