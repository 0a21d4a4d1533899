/**
 * The HTTP server as one function, `(Request) => Promise<Response>`. It uses Web APIs only, so it runs in Node, Next.js, Hono,
 * Bun and Deno. Each group of routes has its own file.
 */
import { type AnswerContext, defaultKeepAliveMs } from '../answer/open-answer.ts'
import { getPath } from 'hono/utils/url'
import type { OpenAiConfig } from '../project/config.ts'
import { checkKey } from '../part/check-key.ts'
import { MillraceError } from '../part/error.ts'
import { headerNames } from '../part/light-headers.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { AgentEditor } from '../project/agent-editor.ts'
import { wireRegistry } from '../project/packs.ts'
import type { Wire } from '../wire/wire.ts'
import type { Place } from '../part/limits.ts'
import { onAnswerEnd, withoutBody } from '../answer/light-response.ts'
import type { Admission } from './http/admission.ts'
import { createRequestCount } from './http/count-requests.ts'
import { createCors } from './http/cors.ts'
import { createEditing, type Editing } from './http/editing.ts'
import { foreignFault, senderOf } from './http/foreign.ts'
import { createKeyCheck } from './http/key.ts'
import { mountAgents } from './routes/agents.ts'
import { homeResponse } from './routes/home.ts'
import { isPagePath, mountPage, type WebFiles } from './routes/page.ts'
import { talkRoutes, runRoutes } from './routes/mounts.ts'
import { errorResponse } from '../answer/http-error.ts'
import { addressOf, asGet, realRequest, responseTo } from './http/incoming-request.ts'
import { noteExecution, waitUntilOf, type Execution, type WaitUntil } from './http/wait-until.ts'
import { createApp, isMonitorPath, isOpen, mayStream, startsRun } from './http/router.ts'
import { isOpenAiPath, openAiError } from './openai/error.ts'
import { unknownRoute } from './routes/unknown-route.ts'
import { version } from './version.ts'
import { listedAgents } from '../runtime/runtime-errors.ts'

/** What the routes serve, who may use them, and their limits. */
export interface HandlerOptions {
  runtime: Runtime
  /** Every route except `GET /health` and `GET /` (which hides the agents) then requires `Authorization: Bearer <key>`. */
  apiKey?: string
  /**
   * Decides whether the application allows this request (by session, token …). Called for every route except `GET /health`.
   * False is answered with 403 (at `GET /` with a page without agents), a throw with 500.
   */
  authorize?: (request: Request) => boolean | Promise<boolean>
  /**
   * The server is for this machine only and has no key. Requests that a web page of another site makes the browser send
   * (a foreign `Origin`, or DNS rebinding, seen in `Host`) are refused with 403.
   */
  localOnly?: boolean
  /** Origins (`https://app.example`) whose pages may use the handler from the browser, even with `localOnly`. */
  allowedOrigins?: readonly string[]
  /**
   * Called with every request that may start a run, once it is authorized and before its body is read. An error that it returns is
   * the answer, with its `status` and `retryAfter`: a limit of your own.
   */
  admit?: (request: Request) => MillraceError | undefined | Promise<MillraceError | undefined>
  /** Limits of starts and streams, over all processes of the store. */
  admission?: Admission
  /** Default 4 MiB. Larger bodies are answered with 413. */
  maxBodyBytes?: number
  /**
   * ms of silence after which a stream sends a keep-alive, so that servers and proxies keep the connection. Default 8000, and 2000 at the
   * edge, where only a write shows that a client has left.
   */
  keepAliveMs?: number
  /** The state of the process for `/health`. Any reason makes it `degraded`, with status 503; unless it waits. */
  health?: () => Health | Promise<Health>
  /** While it returns an error, every request but those of monitors is answered with it: the server takes no more work. */
  draining?: () => MillraceError | undefined
  /** Load errors of the agents, listed with them. */
  agentErrors?: () => { file: string; message: string }[]
  /** Called with errors of the server itself, such as a failing store. Errors of runs are in their logs. */
  onError?: (error: unknown) => void
  /**
   * The platform's `waitUntil` (Vercel, Cloudflare), for platforms that stop the process after the response. It gets a promise
   * for the end of every run, so that callbacks and `after` steps can finish. Not needed where the platform calls the handler with its
   * `(request, env, ctx)`: it takes `ctx.waitUntil`.
   */
  waitUntil?: WaitUntil
  /** Extensions of the OpenAI routes. */
  openai?: OpenAiConfig
  /** Protocols that `POST /api/chat?format=` may name, except those that show the log. Default: {@link wireRegistry}. */
  wires?: ReadonlyMap<string, Wire>
  /** Socket.IO is served beside the handler, which AG-UI's `capabilities` says. */
  sockets?: boolean
  /** The `protocol` recorded for runs and answers that come through `/api/runs`. Default `api`. */
  protocol?: string
  /** The files of the page at `/`. Without it, `/` is one plain page that loads nothing. */
  web?: WebFiles
  /** Agents may be saved from the page. Default false. */
  edit?: boolean
  /** Whoever edits must then send it as `X-Millrace-Edit-Token`. */
  editToken?: string
  /** Reads, checks and saves the files of the agents. */
  agentEditor?: AgentEditor
  /** Calls back whenever agents were loaded again, for pages that show them. Returns a function that ends it. */
  onAgents?: (listener: () => void) => () => void
  /** More metrics of the process for `/metrics`, in Prometheus' text format. */
  metrics?: () => string | Promise<string>
}

export interface Health {
  reasons: string[]
  /** Whether requests wait until the reasons have passed, so that it makes no sense to send them elsewhere. */
  waits?: boolean
  uncaughtErrors: number
  /** The processes that share the store. */
  fleet?: { alive: number; draining: number; runs: number; beatAgeMs: number; clockAheadMs: number }
}

export interface HandlerContext extends AnswerContext {
  /** It is known who asks, or nobody else can: what is recorded may be shown. */
  isPrivate: boolean
  maxBodyBytes: number
  /** What keeps the work of a request alive, if the platform needs it. */
  waitUntil: (request: Request) => WaitUntil | undefined
  openai: OpenAiConfig
  wires: ReadonlyMap<string, Wire>
  sockets: boolean
  protocol: string
  editing: Editing
  agentEditor: AgentEditor | undefined
  onAgents: HandlerOptions['onAgents']
  metrics: () => Promise<string>
}

/** For any server with a `fetch` interface. Never rejects: every failure is a Response. */
export type Handler = (
  request: Request,
  // oxlint-disable-next-line typescript/no-explicit-any -- each platform passes something else, and checks its type
  env?: any,
  execution?: Execution,
) => Promise<Response>

/**
 * Serves all routes (`/api/chat`, `/v1/chat/completions`, `/api/runs` …, `/health`) over one runtime. Conversations and runs are shown only
 * with `apiKey`, `authorize` or `localOnly`: without them, the routes that show any refuse to, and those under `/api/runs` do not exist.
 */
export function createHandler(options: HandlerOptions): Handler {
  return assemble(options).handler
}

/** The handler and its routes, for a test that looks at each of them. */
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
  // With an empty key every request is refused.
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

  async function refusal(request: Request): Promise<MillraceError | undefined> {
    if (allowsKey?.(request.headers.get('authorization')) === false) {
      return new MillraceError('unauthorized', 'Send the header Authorization: Bearer <key>.')
    }
    if (authorize === undefined || (await authorize(realRequest(request)))) return undefined
    return new MillraceError('forbidden', 'This request is not allowed here.')
  }

  function foreign({ headers }: Request, path: string): MillraceError | undefined {
    if (!localOnly) return undefined
    const sender = { ...senderOf(headers), names: headerNames(headers) }
    // A link on another site may open this page: that site cannot read it.
    if (isPagePath(path)) sender.site = undefined
    const fault = foreignFault(sender, allowedOrigins)
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
    // Before anything is awaited: a connection that has closed has no address.
    const caller = admission === undefined ? '' : callerAddress(request)
    let refused: Response | undefined
    let place: Place | undefined
    try {
      let error =
        (isMonitorPath(path) ? undefined : draining()) ??
        (!asksWho || isOpen(path, method, options.web !== undefined) ? undefined : await refusal(request)) ??
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
    // What is not streamed needs its place no longer.
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
  app.notFound((c) => unknownRoute(app, c.req.path, c.req.method))
  app.onError(failed)

  const handler: Handler = async (request, _env, execution) => {
    noteExecution(request, execution)
    const preflight = cors.preflight(request)
    if (preflight !== undefined) return preflight
    const began = performance.now()
    const response = await answer(request)
    // The next request of the connection shall go to another server.
    if (draining() !== undefined) response.headers.set('connection', 'close')
    requests.count(request, response, began)
    return responseTo(request, cors.allow(request, response))
  }
  return { handler, routes: app.routes }
}

function callerAddress(request: Request): string {
  return addressOf(request) ?? 'an unknown address'
}
