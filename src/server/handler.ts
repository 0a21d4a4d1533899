/**
 * The HTTP server as one function, `(Request) => Promise<Response>`, on Web APIs only: it runs in Node, Next.js, Hono, Bun,
 * Deno. What is behind a route stands in the file of that name.
 */
import { Hono } from 'hono'
import { getPath } from 'hono/utils/url'
import type { OpenAiConfig } from '../library/config.ts'
import { checkKey } from '../part/check-key.ts'
import { MillraceError } from '../part/error.ts'
import { stepsInside } from '../pipeline/calls.ts'
import type { Step } from '../pipeline/pipeline.ts'
import { unknownAgent } from '../run/runtime-errors.ts'
import type { Agent, Runtime } from '../run/runtime.ts'
import { textWire } from '../wire/text.ts'
import { uiWire } from '../wire/ui.ts'
import { createCors } from './cors.ts'
import { foreignFault } from './foreign.ts'
import { hashText } from './hash-text.ts'
import { createKeyCheck } from './key.ts'
import { getChatStream, postChat } from './chat.ts'
import { homeResponse } from './home.ts'
import { errorResponse } from './http-error.ts'
import { realRequest } from './incoming-request.ts'
import { answerRequest, getEvents, listRequests, listRuns, showRun, startRun, stopRun } from './runs.ts'
import { mountOpenAi } from './openai.ts'
import { isOpenAiPath, openAiError } from './openai-error.ts'
import { showThread } from './threads.ts'
import { unknownRoute } from './unknown-route.ts'
import { version } from './version.ts'
import { listedAgents } from '../run/listed.ts'

/** What the routes serve, and within which limits. */
export interface HandlerOptions {
  runtime: Runtime
  /** With a key, every route but `GET /health` and `GET /` (which then shows no agents) wants `Authorization: Bearer <key>`. */
  apiKey?: string
  /**
   * Who may send this request, by the application's own means (a session, a token): asked for every route but
   * `GET /health`; a false answer is a 403 (and a page without agents at `GET /`), a throw a 500.
   */
  authorize?: (request: Request) => boolean | Promise<boolean>
  /**
   * The server is for this machine alone and has no key: requests that a web page of another site makes the browser send
   * (a foreign `Origin`, or a name that was pointed at this machine in `Host`) are refused with 403.
   */
  localOnly?: boolean
  /** Origins (`https://app.example`) whose pages may use the handler from the browser, also when it is `localOnly`. */
  allowedOrigins?: readonly string[]
  /** Default 4 MiB; more is 413. */
  maxBodyBytes?: number
  /** ms of silence after which an SSE stream sends a comment frame, so that no proxy takes it for dead. Default 15,000. */
  keepAliveMs?: number
  /** What `/health` says about the process; any reason makes it `degraded`, with status 503. */
  health?: () => { reasons: string[]; uncaughtErrors: number }
  /** Load errors of the agents, to be shown with them. */
  agentErrors?: () => { file: string; message: string }[]
  /** Told of every failure that a client is not told of. */
  onError?: (error: unknown) => void
  /**
   * The platform's own `waitUntil`, where a process ends with its response (Vercel, Cloudflare): given the end of every
   * run, so that callbacks and `after` steps are not cut off.
   */
  waitUntil?: (ended: Promise<unknown>) => void
  /** What the OpenAI routes show beside the protocol itself. */
  openai?: OpenAiConfig
  /** The `protocol` that runs and answers of the routes under `/api/runs` are recorded with. Default `api`. */
  protocol?: string
}

export interface HandlerContext {
  runtime: Runtime
  maxBodyBytes: number
  keepAliveMs: number
  onError: (error: unknown) => void
  waitUntil: HandlerOptions['waitUntil']
  openai: OpenAiConfig
  protocol: string
}

/** For any server that speaks `fetch`. Never rejects: every failure is a Response. */
export type Handler = (request: Request) => Promise<Response>

/**
 * Every route of the server (`/api/chat`, `/v1/chat/completions`, `/api/runs` …, `/health`) over one runtime. Routes under `/api/runs` read, stop
 * and answer everybody's runs: they are there only with `apiKey`, `authorize` or `localOnly`.
 */
export function createHandler(options: HandlerOptions): Handler {
  const {
    runtime,
    apiKey,
    authorize,
    localOnly = false,
    maxBodyBytes = 4 * 1024 * 1024,
    keepAliveMs = 15_000,
  } = options
  const { agentErrors = () => [], onError = () => undefined, waitUntil, openai = {}, protocol = 'api' } = options
  // An empty one lets nobody in.
  if (apiKey) checkKey(apiKey, 'apiKey')
  const context: HandlerContext = { runtime, maxBodyBytes, keepAliveMs, onError, waitUntil, openai, protocol }
  const began = performance.now()
  const app = new Hono()
  const allowedOrigins = new Set(options.allowedOrigins)
  const cors = createCors(allowedOrigins)
  const allowsKey = apiKey === undefined ? undefined : createKeyCheck(apiKey)

  async function refusal(request: Request): Promise<MillraceError | undefined> {
    if (allowsKey?.(request.headers.get('authorization')) === false) {
      return new MillraceError('unauthorized', 'Send the header Authorization: Bearer <key>.')
    }
    if (authorize === undefined || (await authorize(realRequest(request)))) return undefined
    return new MillraceError('forbidden', 'This request is not allowed here.')
  }

  function foreign({ headers }: Request, path: string): MillraceError | undefined {
    if (!localOnly) return undefined
    // A link on another site may lead here: nobody there sees what it shows.
    const site = path === '/' ? undefined : (headers.get('sec-fetch-site') ?? undefined)
    const sender = { host: headers.get('host') ?? undefined, origin: headers.get('origin') ?? undefined, site }
    const fault = foreignFault(sender, allowedOrigins)
    return fault === undefined ? undefined : new MillraceError('forbidden', fault)
  }

  function failed(error: Error): Response {
    const response = errorResponse(error)
    if (response.status >= 500) onError(error)
    return response
  }

  /** Before the routes and not among them: so each of them is called at once, and nothing gets by. */
  async function answer(request: Request): Promise<Response> {
    const { method } = request
    const path = getPath(request)
    let refused: Response | undefined
    try {
      const error = (isOpen(path, method) ? undefined : await refusal(request)) ?? foreign(request, path)
      if (error !== undefined) refused = isOpenAiPath(path) ? openAiError(error) : errorResponse(error)
    } catch (error) {
      refused = failed(error as Error)
    }
    if (refused === undefined) return app.fetch(request)
    return method === 'HEAD' ? new Response(null, refused) : refused
  }

  app.get('/', async (c) => {
    const refused = await refusal(c.req.raw)
    const isSeen = refused === undefined
    const hasRuns = app.routes.some(({ path }) => path === '/api/runs')
    return homeResponse(c.req.raw, {
      agents: isSeen ? listedAgents(runtime.agents) : { refusal: refused.message },
      faults: isSeen ? agentErrors().map(({ message }) => message) : [],
      key: allowsKey !== undefined,
      links: [...(isSeen ? ['/api/agents', '/v1/models', ...(hasRuns ? ['/api/runs'] : [])] : []), '/health'],
    })
  })
  app.get('/health', () => {
    const uptime = Math.round((performance.now() - began) / 1000)
    const { reasons = [], ...counts } = options.health?.() ?? {}
    const isDegraded = reasons.length > 0
    const state = isDegraded ? { status: 'degraded', reasons } : { status: 'ok' }
    const body = { ...state, version, uptime, runs: { active: runtime.active }, ...counts }
    return Response.json(body, isDegraded ? { status: 503, headers: { 'cache-control': 'no-store' } } : undefined)
  })
  app.get('/api/agents', () =>
    Response.json({ agents: listedAgents(runtime.agents).map(describe), errors: agentErrors() }),
  )
  app.get('/api/agents/:id', async (c) => {
    const id = c.req.param('id')
    const agent = runtime.agents.get(id)
    if (agent === undefined) throw unknownAgent(id, runtime.agents)
    return Response.json({ ...describe(agent), hash: await hashText(agent.pipeline.text) })
  })
  app.post('/api/chat', (c) => postChat(context, c.req.raw, uiWire))
  app.post('/api/beddel/chat', (c) => postChat(context, c.req.raw, textWire))
  app.get('/api/chat/:id/stream', (c) => getChatStream(context, c.req.raw, c.req.param('id')))
  mountOpenAi(app, context)
  if (allowsKey !== undefined || authorize !== undefined || localOnly) mountRuns(app, context)

  app.notFound((c) => unknownRoute(app, c.req.path, c.req.method))
  app.onError(failed)

  return async (request) => cors.preflight(request) ?? cors.allow(request, await answer(request))
}

/** The page itself tells nobody more than that it is there. */
function isOpen(path: string, method: string): boolean {
  return (path === '/health' || path === '/') && (method === 'GET' || method === 'HEAD')
}

function mountRuns(app: Hono, context: HandlerContext): void {
  app.get('/api/runs', (c) => listRuns(context, new URL(c.req.url)))
  app.post('/api/runs', (c) => startRun(context, c.req.raw))
  app.get('/api/runs/:id', (c) => showRun(context, c.req.param('id')))
  app.get('/api/runs/:id/events', (c) => getEvents(context, c.req.raw, c.req.param('id'), new URL(c.req.url)))
  app.get('/api/threads/:id', (c) => showThread(context, c.req.param('id'), new URL(c.req.url)))
  app.post('/api/runs/:id/stop', (c) => stopRun(context, c.req.raw, c.req.param('id')))
  app.get('/api/runs/:id/requests', (c) => listRequests(context, c.req.param('id')))
  app.post('/api/runs/:id/requests/:requestId', (c) =>
    answerRequest(context, c.req.raw, c.req.param('id'), c.req.param('requestId')),
  )
}

function describe({ id, pipeline }: Agent) {
  const { metadata, input, workflow, after } = pipeline
  const steps = workflow.concat(after).map((step) => ({
    id: step.id,
    type: step.type === 'custom' ? step.stepType : step.type,
    ...(step.type === 'llm' || step.type === 'router' ? { model: step.config.model } : undefined),
    ...(step.type === 'llm' ? { stream: step.config.stream } : undefined),
  }))
  const all = (step: Step): Step[] => [step, ...stepsInside(step).flatMap(all)]
  const tools = workflow
    .concat(after)
    .flatMap(all)
    .flatMap((step) => (step.type === 'llm' || step.type === 'router' ? step.config.tools : []))
  return {
    id,
    ...metadata,
    ...(pipeline.history && { history: pipeline.history }),
    ...(input && { input }),
    steps,
    tools: [...new Set(tools.map(({ name }) => name))],
  }
}
