/** What a project registers in code: `millrace.config.ts` beside its agents, or the options of `createRuntime`. */
import type { Endpoint } from '../run/models/resolver.ts'
import type { McpServer } from '../run/mcp/server.ts'
import type { Callback, LanguageModel, PrimitiveHandler, Pricing, ToolImplementation } from '../run/ports.ts'
import type { DefaultTimeouts } from '../run/time-limits.ts'
import type { Pack } from './packs.ts'

/** What a config says; each key may be left out. A name used in YAML that nobody registers is a load error. */
export interface Config {
  /** By the name that YAML uses. Default: what {@link toolRegistry} holds. The tools that ship are there either way. */
  tools?: Record<string, ToolImplementation>
  /** What `onFinish` and the like may name. Default: what {@link callbackRegistry} holds. */
  callbacks?: Record<string, Callback>
  /** Step types by the Beddel contract, `(config, context) => value`. Default: what {@link handlerRegistry} holds. */
  steps?: Record<string, PrimitiveHandler>
  /**
   * Modules that bring steps, tools, callbacks and agents: `[import('millrace-pack-…')]`. What the config names itself wins
   * over a pack; two packs that bring the same name are an error. `createRuntime` takes them awaited.
   */
  packs?: (Pack | PromiseLike<Pack>)[]
  models?: {
    /** For steps that name none. */
    default?: string
    endpoints?: Endpoint[]
    /** Models of your own: the name before the colon → what makes one from the rest. */
    providers?: Record<string, (modelId: string) => LanguageModel>
  }
  /** Names of environment variables that `$env.NAME` may read. */
  env?: string[]
  /** What is secret besides what is found by name: see docs/security.md. */
  secrets?: SecretsConfig
  /** MCP servers, whose tools are `server_tool` in YAML; each is started or connected to on its first use. */
  mcpServers?: Record<string, McpServer>
  /** USD per million tokens, by model as YAML names it; a model that is not named has no known price. */
  pricing?: Record<string, Pricing>
  /** How much is read from outside before it is cut off. */
  limits?: LimitsConfig
  /** ms that a client has to answer a tool call or an approval before it counts as unavailable. Default 24 hours. */
  requestDeadlineMs?: number
  /** For agents that set no `timeouts` of their own: ms, or `none`. */
  timeouts?: DefaultTimeouts
  /** For `millrace serve`. */
  server?: ServerConfig
  /** For `millrace serve` and `millrace run`. */
  record?: RecordConfig
}

/** What is longer ends the model call or the connection with an error that names the limit. */
export interface LimitsConfig {
  /** Bytes of one line or event of a provider's stream, and of one message of an MCP server. Default 16 MiB. */
  lineBytes?: number
  /** Bytes of one response of a provider, after decompression. Default 64 MiB. */
  bodyBytes?: number
  /** UTF-16 units of one model answer, tool calls and files included. Default 16 Mi; `limits` of an agent wins. */
  answerChars?: number
}

/** Values that are removed from logs, answers and errors, whatever they look like. */
export interface SecretsConfig {
  /** Names of environment variables whose values are secret. */
  names?: string[]
  /** Further values, of at least 6 characters: read them from a file or a vault, do not write them here. */
  values?: string[]
}

/**
 * How `millrace serve` listens; a flag of the command line wins. The key is no setting: it is `MILLRACE_API_KEY`, and to
 * do without one beyond this machine has to be said aloud, with `--insecure-no-auth`.
 */
export interface ServerConfig {
  /** 0 picks a free one. Default 3000. */
  port?: number
  /** Address to listen on. Default `127.0.0.1`. */
  host?: string
  /** A request body of more bytes is a 413. Default 4 MiB. */
  maxBodyBytes?: number
  /** ms of silence after which an SSE stream sends a comment frame. Default 15,000. */
  keepAliveMs?: number
  /** ms that active runs get to end when the server is stopped. Default 2000. */
  graceMs?: number
  /** ms that the steps of a run that is stopped get to settle. Default 300. */
  stopGraceMs?: number
  /** Origins (`https://app.example`) whose pages may use the server from the browser; those of this server always may. */
  allowedOrigins?: string[]
  openai?: OpenAiConfig
}

/** What the OpenAI routes show beside the protocol itself. */
export interface OpenAiConfig {
  /**
   * Which extensions a client may ask for: `tools` shows the calls of tools that the server runs, `trace` shows every
   * model call with its system prompt. Under `/v1` they are off until a request asks for them; under `/api/v1` they are on.
   * Default: `tools` under `/v1`, both under `/api/v1`. A list given here applies to both.
   */
  extensions?: ('tools' | 'trace')[]
  /** The key of a trace in its frame. Default `bernard`. */
  traceKey?: string
  /**
   * UTF-16 units of a tool's output that go over the wire; the record keeps it whole. Default 8000. In the environment:
   * `STREAM_TOOL_OUTPUT_MAX_CHARS`, which wins.
   */
  streamToolOutputMaxChars?: number
}

/** Where runs are kept; a flag of the command line wins. */
export interface RecordConfig {
  /** Folder of the log, seen from where the command is given; `none` keeps it in memory. Default `.millrace`. */
  data?: string
  /** Also write `<data>/runs/<run>.ndjson` and, when a run has ended, `<run>.summary.json`. Default false. */
  logFiles?: boolean
  /** ms that a write waits for another process that holds the database. Default 5000. */
  busyTimeoutMs?: number
}

/** Gives a config file its types: `export default defineConfig({ … })`. */
export function defineConfig(config: Config): Config {
  return config
}

/** Gives a tool its types. `parameters` is a zod schema; `execute` gets what it made of the model's arguments. */
export function defineTool(tool: ToolImplementation): ToolImplementation {
  return tool
}
