/** The configuration of a project: `millrace.config.ts` next to its agents, or the options of `createRuntime`. */
import type { RetentionConfig } from '../record/policy.ts'
import type { DecoderName } from '../models/providers.ts'
import type { CacheSetting } from '../models/prompt-cache.ts'
import type { Endpoint } from '../models/resolver.ts'
import type { McpServer } from '../tools/mcp/server.ts'
import type { Callback, PrimitiveHandler } from '../engine/registry.ts'
import type { LanguageModel, Pricing } from '../models/language-model.ts'
import type { ToolImplementation } from '../tools/tool.ts'
import type { DefaultTimeouts } from '../engine/limits.ts'
import type { OtlpConfig } from '../record/otlp/settings.ts'
import type { Wire } from '../wire/wire.ts'
import type { QuotasConfig } from '../part/quota.ts'
import type { Pack } from './packs.ts'
import type { Claim, Role } from '../part/principal.ts'

/** All keys are optional. A name that YAML uses but nothing registers is a load error. */
export interface Config {
  /** Tools by the name that YAML uses. Default: {@link toolRegistry}. The built-in tools are always available. */
  tools?: Record<string, ToolImplementation>
  /** Callbacks that `onFinish` and similar keys may name. Default: {@link callbackRegistry}. */
  callbacks?: Record<string, Callback>
  /** Step types with the Beddel contract, `(config, context) => value`. Default: {@link handlerRegistry}. */
  steps?: Record<string, PrimitiveHandler>
  /** Protocols by the names that `run --format` and `POST /api/chat?format=` take. Default: {@link wireRegistry}. */
  wires?: Record<string, Wire>
  /**
   * Modules that provide steps, tools, callbacks, wires and agents: `[import('millrace-pack-…')]`. The config's own entries override
   * those of packs; it is an error when two packs define the same name. For `createRuntime`, await the imports.
   */
  packs?: (Pack | PromiseLike<Pack>)[]
  models?: {
    /** The model of steps that name none. */
    default?: string
    endpoints?: Endpoint[]
    /** Your own models: the name before the colon → a function that creates the model from the rest. */
    providers?: Record<string, (modelId: string) => LanguageModel>
    /**
     * The decoder of the streams of model servers: `millrace`, or the AI SDK's `package`, which is slower. Default `millrace`. The
     * environment variable `MILLRACE_DECODER` takes precedence.
     */
    decoder?: DecoderName
    /**
     * Prompt caching, for steps that do not set it. `auto`: providers are told to cache a prompt where another call with the same beginning is
     * likely. `1h`: so, and Anthropic keeps it for an hour instead of five minutes. `none`: they are told nothing. Default `auto`.
     */
    cache?: CacheSetting
    /** Tokens of the windows of models, by the model's name in YAML: for steps with `context`. */
    windows?: Record<string, number>
  }
  /** Names of environment variables that `$env.NAME` may read. */
  env?: string[]
  /** Secrets in addition to those that are recognized by name: see docs/security.md. */
  secrets?: SecretsConfig
  /** MCP servers; YAML names their tools `server_tool`. Each is started or connected to on first use. */
  mcpServers?: Record<string, McpServer>
  /** USD per million tokens, by the model's name in YAML. Other models have no known price. */
  pricing?: Record<string, Pricing>
  /** Size limits for data from providers and MCP servers. */
  limits?: LimitsConfig
  /** How long a client has to answer a tool call or an approval before it is closed as unavailable, in ms. Default 24 hours. */
  requestDeadlineMs?: number
  /**
   * After how long without an entry a conversation counts as closed, in ms, or `none`. Its suspended run is then ended. A new message
   * opens it again. Default 30 days.
   */
  closeThreadsAfterMs?: number | 'none'
  /** Timeouts of agents that set none themselves: ms, or `none`. */
  timeouts?: DefaultTimeouts
  /** For `millrace serve`. */
  server?: ServerConfig
  /** For `millrace serve` and `millrace run`. */
  record?: RecordConfig
  /** For `millrace serve` and `millrace run`: reports to other systems. */
  telemetry?: TelemetryConfig
}

/** Reports to other systems. */
export interface TelemetryConfig {
  /** Off unless it is set here, or by OpenTelemetry's own environment variables: see docs/observability.md. */
  otlp?: OtlpConfig
}

/** Exceeding a limit ends the model call or the connection with an error that names the limit. */
export interface LimitsConfig {
  /** Maximum size of one line or event of a provider's stream, and of one message of an MCP server, in bytes. Default 16 MiB. */
  lineBytes?: number
  /** Maximum size of one JSON response of a provider after decompression, in bytes; four times that for a stream. Default 64 MiB. */
  bodyBytes?: number
  /** Maximum length of one model answer with its tool calls and files, in UTF-16 units. Default 16 Mi; an agent's `limits` win. */
  answerChars?: number
  /** Maximum number of tool calls in one model answer. Default 1000; an agent's `limits` win. */
  toolCalls?: number
}

/** Values to remove from logs, answers and errors, whatever they look like. */
export interface SecretsConfig {
  /** Names of environment variables whose values are secret. */
  names?: string[]
  /** Other secret values, at least 6 characters each. Read them from a file or a vault; do not write them here. */
  values?: string[]
  /**
   * Keys of objects in inputs and outputs of tools, such as `password`: strings and numbers under them are redacted. Case, `-` and `_`
   * do not matter. Default: none, because the log is all that is left of a run that waited for a client or an approval, or
   * whose server crashed: a tool that needs such a value then gets `[redacted]`. A tool that runs at once gets the real value.
   */
  keys?: string[]
}

/**
 * How `millrace serve` listens; command line flags override it. Set the API key with `MILLRACE_API_KEY`. To listen on a
 * non-loopback address without a key, pass `--insecure-no-auth`.
 */
export interface ServerConfig {
  /** Port to listen on; 0 picks a free one. Default 3000. */
  port?: number
  /** Address to listen on. Default `127.0.0.1`. */
  host?: string
  /** Maximum size of a request body in bytes; larger ones get a 413. Default 4 MiB. */
  maxBodyBytes?: number
  /** An idle SSE stream sends a comment frame after this many ms. Default 15,000. */
  keepAliveMs?: number
  /** How long active runs may take to finish when the server shuts down, in ms. Default 2000. */
  graceMs?: number
  /**
   * With a shared store: how long the server answers 503 at least when it shuts down, so that balancers notice.
   * Default 1000.
   */
  drainMs?: number
  /** How long the steps of a stopped run may take to settle, in ms. Default 300. */
  stopGraceMs?: number
  /** Origins (`https://app.example`) whose pages may call the server from a browser. The server's own origin is always allowed. */
  allowedOrigins?: string[]
  /**
   * The origin at which people reach the page (`https://agents.example`). MCP clients get links to it for questions that they cannot show
   * themselves. Default: no links.
   */
  publicUrl?: string
  /** false: `GET /` is one plain page that loads nothing, and there are no rooms. Default true. */
  page?: boolean
  /**
   * Whether agents may be saved from the page. `token`: with the token of the server, which is in `<data>/server.json`.
   * Default: only without a key, on a loopback address.
   */
  edit?: boolean | 'token'
  rateLimit?: RateLimitConfig
  /** How many streams a caller may have open at the same time. More get a 429 with `Retry-After`. Default: no limit. */
  streamLimit?: number
  /** What each user, tenant and key may use. Needs `access`, because a request without a user counts for nobody. Default: no limits. */
  quotas?: QuotasConfig
  openai?: OpenAiConfig
  responses?: ResponsesConfig
  messages?: MessagesConfig
  access?: AccessConfig
  /** How agents are tools of MCP, at `/mcp`. false: they are not. */
  mcp?: false | McpConfig
}

/** Agents as tools of MCP. */
export interface McpConfig {
  /**
   * How long a call of a client that knows tasks may take before it is answered with a task: a duration such as `1s`, or ms. Default `1s`.
   */
  taskAfter?: string | number
  /** The agents that are offered, by name. Default: all that are not hidden. */
  agents?: string[]
  /**
   * What it means when a client cancels a question of a call that waits for it. `deny`: the question is answered with no. `wait`: it stays open for
   * others. Default `deny`. In a task it always stays open.
   */
  onCancel?: 'deny' | 'wait'
  /** What becomes of calls of client tools. `unavailable`: the model learns it at once. `wait`: a client of another protocol may answer. Default `unavailable`. */
  clientTools?: 'unavailable' | 'wait'
}

/** Who may use the server: docs/access.md. */
export interface AccessConfig {
  /** Keys of programs, with their secrets in environment variables. `millrace keys add` makes others. */
  keys?: ConfiguredKey[]
  /** Asks the application who makes a request, by its own sessions. At most 5 s; a failure is a 503. */
  authenticate?: (request: Request) => Authenticated | Promise<Authenticated>
  /** `user`: each browser without a credential is a user of its own, by a signed cookie. Default `none`. */
  anonymous?: 'none' | 'user'
  /** Tokens of an OpenID provider count as credentials. */
  jwt?: JwtConfig
  /** People sign in to the page with an OpenID provider, and `millrace login` does. */
  login?: LoginConfig
  /** The claims of tokens and sessions that agents may read as `$user.claims.<name>`. Default: none. */
  claims?: string[]
}

/** Where a token says who its user is. Each is the name of a claim, or a path such as `realm_access.roles`. */
export interface ClaimNames {
  /** The user's id, 1 to 256 characters. Default `sub`. */
  user?: string
  /** If set, a token without it does not count. Default: all users are in one tenant. */
  tenant?: string
  /** A text or a list. Names that are no roles of Millrace are ignored; without any role, it is `user`. Default: all are `user`. */
  roles?: string
}

export interface JwtConfig extends ClaimNames {
  /** As the tokens name it in `iss`. */
  issuer: string
  /** One of the token's `aud`. */
  audience: string
  /** URL of the issuer's public keys. Default: as its discovery says. */
  jwks?: string
}

/** The names of claims default to those of `jwt` if it has the same issuer. */
export interface LoginConfig extends ClaimNames {
  /** As its discovery names it. */
  issuer: string
  /** A client of the issuer that may redirect to `<server>/auth/callback`. */
  clientId: string
  /** The environment variable with the client's secret, for issuers that require one. */
  secretEnv?: string
  /** What is asked for, separated by spaces. Default `openid profile`. */
  scope?: string
  /** The origin of the server as browsers see it, `https://agents.example`. Default: the host of the request, with https unless it is this machine. */
  url?: string
}

export interface ConfiguredKey {
  name: string
  /** The environment variable with the secret, at least 32 characters. */
  env: string
  /** Default `user`. */
  role?: Role
  tenant?: string
  /** The only agents that it may use. Default: all that are open to its role. */
  agents?: string[]
  /** The last day on which it counts, such as `2027-06-30`, or a moment in ISO 8601. */
  expires?: string
}

/** Who makes a request. null: nobody that the application knows; true: may do everything; false: 403. */
export type Authenticated =
  | {
      /** 1 to 256 characters. */
      id: string
      tenant?: string
      /** Default: user. */
      roles?: readonly Role[]
      name?: string
      claims?: Readonly<Record<string, Claim>>
      /** Epoch ms: open streams end then. */
      expiresAt?: number
      /** How long the answer counts for the same headers and query, whatever the path. Default: it is asked again. */
      cacheSeconds?: number
    }
  | boolean
  | null

/** How many runs a caller may start. More get a 429 with `Retry-After`. Default: no limit. */
export interface RateLimitConfig {
  /** It may start so many at once, and one in each share of a minute after that. */
  runsPerMinute: number
}

/** Additions of the OpenAI routes to the protocol. */
export interface OpenAiConfig {
  /**
   * Extensions that a client may enable: `tools` shows the calls of tools that the server runs, `trace` shows every
   * model call with its system prompt. Under `/v1` they are off until a request enables them; under `/api/v1` they are on.
   * Default: `tools` under `/v1`, both under `/api/v1`. A list set here applies to both.
   */
  extensions?: ('tools' | 'trace')[]
  /** The key under which a frame contains its trace. Default `bernard`. */
  traceKey?: string
  /**
   * Maximum length of a tool output sent to clients, in UTF-16 units; the log keeps all of it. Default 8000. The
   * environment variable `STREAM_TOOL_OUTPUT_MAX_CHARS` overrides it.
   */
  streamToolOutputMaxChars?: number
  /**
   * true: a request with an unknown parameter, or a hint that this server does not follow, is a 400. Default false: it is ignored, and the
   * run's log has a warning.
   */
  strict?: boolean
}

/** `POST /v1/responses`. */
export interface ResponsesConfig {
  /** Whether clients see the calls that the server runs, as items of the type `mcp_call`. Default `shown`. */
  serverTools?: 'shown' | 'hidden'
}

/** `POST /v1/messages`. */
export interface MessagesConfig {
  /** Whether clients see the calls that the server runs, as blocks of the type `mcp_tool_use`. Default `shown`. */
  serverTools?: 'shown' | 'hidden'
}

/** Where runs are stored; command line flags override it. */
export interface RecordConfig {
  /**
   * URL of a store that several servers share: `redis://host:6379`. `--store` and the environment variable `MILLRACE_STORE`, where a
   * password belongs, override it. Default: the log is in the data folder.
   */
  store?: string
  /** Folder of the log, relative to the working directory; `none` keeps the log in memory. Default `.millrace`. */
  data?: string
  /** Also write `<data>/runs/<run>.ndjson`, and `<run>.summary.json` once a run has ended. Default false. */
  logFiles?: boolean
  /** How long a write waits for another process that has locked the database, in ms. Default 5000. */
  busyTimeoutMs?: number
  /** Merge the deltas of a run so long after its end: `1d`, `12h`, ms, or `never`. Default `1d`; in Redis `10m`. */
  compactAfter?: string | number
  /** Where runs go from Redis after their end: a folder that all instances see, a file that ends in `.db`, or `postgres://host/database`. The environment variable `MILLRACE_ARCHIVE`, where a password belongs, takes precedence. Default: nowhere. */
  archive?: string
  /** Move a run to the archive so long after its end: `1h`, ms, or `never`. Default `1h`. */
  archiveAfter?: string | number
  retention?: RetentionConfig
}

/** Returns the config as it is; adds types to a config file: `export default defineConfig({ … })`. */
export function defineConfig(config: Config): Config {
  return config
}

/** Returns the tool as it is; adds types. `parameters` is a zod schema; `execute` receives the arguments that it parsed. */
export function defineTool(tool: ToolImplementation): ToolImplementation {
  return tool
}
