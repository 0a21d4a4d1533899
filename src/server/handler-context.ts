/** The options of a handler, and the context of its routes. */
import type { DeliveryContext } from '../delivery/open-delivery.ts'
import type { AuditOutcome } from '../part/audit.ts'
import type { MillraceError } from '../part/error.ts'
import type { OwnerFilter, Principal } from '../part/principal.ts'
import type { AgentEditor } from '../project/agent-editor.ts'
import type { Authenticated, MessagesConfig, OpenAiConfig, ResponsesConfig } from '../project/config.ts'
import type { TestDesk } from '../regress/test-desk.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Wire } from '../wire/wire.ts'
import type { Quotas } from '../access/quotas.ts'
import type { Action } from '../access/decide.ts'
import type { Access } from './access/access.ts'
import type { Admission } from './http/admission.ts'
import type { ReasoningTokens } from './turn/reasoning-token.ts'
import type { McpOptions, McpServices } from './mcp/settings.ts'
import type { Permit } from '../part/limits.ts'
import type { Editing } from './http/editing.ts'
import type { RequestExecution, WaitUntil } from './http/wait-until.ts'
import type { Renames } from './live/renames.ts'
import type { McpConnect } from './routes/mcp-connect.ts'
import type { WebFiles } from './routes/page.ts'

/** The runtime of the routes, their access rules, and their limits. */
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
   * Says who makes a request, by the application's own sessions: their runs and threads are theirs, and nobody else sees them. Called once for every
   * route except `GET /health`, for at most 5 s. null: 401; false: 403; true may do everything, as with `authorize`; a throw: 503.
   */
  authenticate?: (request: Request) => Authenticated | Promise<Authenticated>
  /** Who makes each request, instead of `apiKey`, `authorize` and `authenticate`. */
  access?: Access
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
  /** For `GET /api/usage`: what the caller has used of its quotas. */
  quotas?: Pick<Quotas, 'usesOf'>
  /** Default 4 MiB. Larger bodies are answered with 413. */
  maxBodyBytes?: number
  /**
   * ms of silence after which a stream sends a keep-alive, so that servers and proxies keep the connection. Default 8000, and 2000 at the edge,
   * where only a write shows that a client has left.
   */
  keepAliveMs?: number
  /** The state of the process for `/health`. Any reason makes it `degraded`, with status 503; unless it waits. */
  health?: () => Health | Promise<Health>
  /** While it returns an error, every request except those of monitors gets it as the response: the server accepts no more work. */
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
  /** The address of this server for people: `https://agents.example`. Default: that of each request. */
  publicUrl?: string | undefined
  /** How the agents are tools of MCP, at `/mcp`. false: they are not. */
  mcp?: false | McpOptions
  /** What the clients of `/v1/responses` see. */
  responses?: ResponsesConfig
  /** What the clients of `/v1/messages` see. */
  messages?: MessagesConfig
  /** Protocols that `POST /api/chat?format=` may name, except those that show the log. Default: the config's `wireRegistry`. */
  wires?: ReadonlyMap<string, Wire>
  /** Socket.IO is served beside the handler, which AG-UI's `capabilities` reports. */
  sockets?: boolean
  /** The `protocol` recorded for runs and answers that come through `/api/runs`. Default `api`, and `page` for those of the page. */
  protocol?: string
  /** The files of the page at `/`. Without it, `/` is one plain page that loads nothing. */
  web?: WebFiles
  /** Agents may be saved from the page. Default false. */
  edit?: boolean
  /** Edits must then send it as `X-Millrace-Edit-Token`. */
  editToken?: string
  /** Reads, checks and saves the files of the agents. */
  agentEditor?: AgentEditor
  /** The test cases beside the agents. */
  tests?: () => Promise<TestDesk>
  /** Calls back after each reload of the agents, for pages that show them. Returns a function that unsubscribes. */
  onAgents?: (listener: () => void) => () => void
  /** More metrics of the process for `/metrics`, in Prometheus' text format. */
  metrics?: () => string | Promise<string>
}

export interface Health {
  reasons: string[]
  /** Whether requests wait until the reasons have passed, so that another server would not help. */
  waits?: boolean
  uncaughtErrors: number
  /** The processes that share the store. */
  fleet?: { alive: number; draining: number; runs: number; beatAgeMs: number; clockAheadMs: number }
}

/** The context of every route. */
export interface HandlerContext extends DeliveryContext {
  /** Requests are authenticated, or the server is local only: recorded data may be shown. */
  isPrivate: boolean
  maxBodyBytes: number
  /** The platform's `waitUntil` for a request, if needed. */
  waitUntil: (request: Request) => WaitUntil | undefined
  openai: OpenAiConfig
  /** Absent: there is no `/mcp`. */
  mcp: McpServices | undefined
  /** Absent: people sign in to no MCP server. */
  connect: McpConnect | undefined
  responses: ResponsesConfig
  messages: MessagesConfig
  /** What clients keep of a model's reasoning. */
  reasoning: ReasoningTokens
  wires: ReadonlyMap<string, Wire>
  sockets: boolean
  protocol: string
  editing: Editing
  agentEditor: AgentEditor | undefined
  tests: HandlerOptions['tests']
  onAgents: HandlerOptions['onAgents']
  renames: Renames
  quotas: HandlerOptions['quotas']
  metrics: () => Promise<string>
}

/** The context of one request: everything in it is the caller's. */
export interface RequestContext extends HandlerContext {
  principal: Principal
  /** Whose runs lists and sums may count, for code that asks the whole store. */
  filter: OwnerFilter
  /** Calls back once when the caller's open streams must end. Returns a function that stops waiting. */
  onExpired(end: (error: MillraceError) => void): () => void
  /** For routes of which only some requests start runs or stream: an error is the answer, and a permit is to be left. */
  admission: { start(): Promise<MillraceError | undefined>; stream(): Promise<Permit | MillraceError> }
  /** Adds a row to the audit. `resource`: an id, never a text. `tenant`: of the resource; default that of the caller. */
  audit(action: Action, resource: string, outcome: AuditOutcome, tenant?: string): void
  /** The same for everybody: the whole runtime. Pass {@link filter} to whatever is asked of it. */
  server: HandlerContext
}

/** For any server with a `fetch` interface. Never rejects: every failure is a Response. */
export type Handler = (
  request: Request,
  // oxlint-disable-next-line typescript/no-explicit-any -- each platform passes something else, and checks its type
  env?: any,
  execution?: RequestExecution,
) => Promise<Response>
