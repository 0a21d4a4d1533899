/** What the engine is given from outside: models, tools, callbacks, step types. Plain values, registered by name. */
import type { LanguageModelV2, LanguageModelV3, LanguageModelV4 } from '@ai-sdk/provider'
import type { McpPool } from './mcp/pool.ts'
import type { Message } from '../part/message.ts'
import type { Part } from '../part/part.ts'

/** A model of the AI SDK, of any provider package: specification V2, V3 or V4. */
export type LanguageModel = LanguageModelV2 | LanguageModelV3 | LanguageModelV4

/** What a tool’s `execute` is given beside its input. */
export interface ToolContext {
  /** Aborts when the run ends, for whatever reason, and when the tool's own timeout passes. */
  signal: AbortSignal
  toolCallId: string
  runId: string
  threadId: string
  /** The conversation that led to the call. */
  messages: Message[]
}

/** A tool by the Beddel contract. Without `execute` it runs in the client: the run waits for the answer. */
export interface ToolImplementation {
  description?: string
  /** A zod schema, any Standard Schema, or JSON Schema made with the AI SDK's `jsonSchema`. Enforced before `execute`. */
  parameters: unknown
  /** `input` is what the schema made of the model's arguments; a throw becomes an error result. */
  execute?(input: any, context: ToolContext): unknown
  /** Running it twice does no harm: after a crash it is run again instead of reported unavailable. */
  idempotent?: boolean
  /** Its results change from call to call: a `router` that asks for the same again gets a new one, not the one before. */
  volatile?: boolean
  /** ms; default 60,000. */
  timeout?: number
  /** Ask before every call. */
  approval?: boolean
}

/** What `onFinish` and the like name. Given what the key’s documentation says; what it throws becomes a `warning` of the run. */
export type Callback = (event: any) => unknown

/** What a custom step type is given, by the Beddel contract `(config, context) => Promise<Response | value>`. */
export interface ExecutionContext {
  input: Record<string, unknown>
  variables: Map<string, unknown>
  signal: AbortSignal
  runId: string
  threadId: string
  /** Adds a part to the run under this step: `data` for the client, for instance. */
  emit(part: Part): void
  tools: ReadonlyMap<string, ToolImplementation>
  /** A model by the name people write in YAML. */
  model(name: string): LanguageModel
}

/**
 * A step type. What it returns or promises is the step's result; a `Response`, a `ReadableStream` or another async iterable
 * (a relay's `sequence`, what an `async *` function gives) is the answer instead, in text, bytes and parts, and ends the
 * pipeline. Only a handler that is an `async *` function itself yields parts, and its `return` is what counts: one that
 * wraps such a handler says `return yield* step(config, context)`. A stream is closed when the run or step ends before it.
 * What a step throws is told to clients as `Step "x" (type) failed.` and stands in the log; the message of a
 * `MillraceError` is told as it is.
 */
export type PrimitiveHandler = (config: any, context: ExecutionContext) => unknown

export interface Registry {
  tools: ReadonlyMap<string, ToolImplementation>
  callbacks: ReadonlyMap<string, Callback>
  steps: ReadonlyMap<string, PrimitiveHandler>
  models: ModelResolver
  /** The MCP servers of the config, when it names any. */
  mcp?: McpPool
  /** UTF-16 units of one model answer, for agents that do not say another number. */
  answerChars?: number
  /** USD per million tokens, by the name people write in YAML. A model that is not named has no known price. */
  pricing?: ReadonlyMap<string, Pricing>
}

/** USD per million tokens. */
export interface Pricing {
  input: number
  output: number
}

export interface ModelResolver {
  /** Used when a step names none. */
  readonly defaultModel?: string
  /** What may stand before the colon. */
  readonly providers: readonly string[]
  /** Throws `MillraceError` `unknown-model` or `missing-key` with one clear line before anything is sent. */
  resolve(name: string): LanguageModel
}
