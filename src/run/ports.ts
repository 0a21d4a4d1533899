/** What the engine receives from outside: models, tools, callbacks and step types, registered by name. */
import type { LanguageModelV2, LanguageModelV3, LanguageModelV4 } from '@ai-sdk/provider'
import type { McpPool } from './mcp/pool.ts'
import type { Message } from '../part/message.ts'
import type { Part } from '../part/part.ts'

/** A model of the AI SDK, of any provider package: specification V2, V3 or V4. */
export type LanguageModel = LanguageModelV2 | LanguageModelV3 | LanguageModelV4

/** The second argument of a tool’s `execute`. */
export interface ToolContext {
  /** Aborts when the run ends, for any reason, and when the tool's own timeout expires. */
  signal: AbortSignal
  toolCallId: string
  runId: string
  threadId: string
  /** The conversation that led to the call. */
  messages: Message[]
}

/** A tool, following the Beddel contract. Without `execute` it runs in the client, and the run waits for its result. */
export interface ToolImplementation {
  description?: string
  /** A zod schema, any Standard Schema, or JSON Schema made with the AI SDK's `jsonSchema`. Input is validated before `execute`. */
  parameters: unknown
  /** `input` is the validated input. A thrown error becomes an error result, which the model sees. */
  execute?(input: any, context: ToolContext): unknown
  /** Running it twice does no harm. After a crash it is run again instead of being reported as unavailable. */
  idempotent?: boolean
  /** Its results change from call to call, so a `router` that repeats a call gets a new result instead of the previous one. */
  volatile?: boolean
  /** ms; default 60,000. */
  timeout?: number
  /** Whether the client must approve every call. */
  approval?: boolean
}

/** A function that keys such as `onFinish` name (see docs/yaml.md). Its errors become `warning` parts of the run. */
export type Callback = (event: any) => unknown

/** The second argument of a custom step type, following the Beddel contract `(config, context) => Promise<Response | value>`. */
export interface ExecutionContext {
  input: Record<string, unknown>
  variables: Map<string, unknown>
  signal: AbortSignal
  runId: string
  threadId: string
  /** Adds a part to the run under this step, for example `data` for the client. */
  emit(part: Part): void
  tools: ReadonlyMap<string, ToolImplementation>
  /** A model by its name in YAML. */
  model(name: string): LanguageModel
}

/**
 * A step type. The value that it returns or resolves with is the step's result. If that is a `Response`, a `ReadableStream` or
 * another async iterable (a relay's `sequence`, an `async *` function's generator), it is the answer instead, in text, bytes
 * and parts, and ends the pipeline. If the handler itself is an `async *` function, it yields parts and its `return` value
 * counts; to wrap such a handler, write `return yield* step(config, context)`. A stream is closed if the run or the step ends
 * before it. If a step throws, clients see `Step "x" (type) failed.` and the log has the error; a `MillraceError`'s message is
 * shown to clients unchanged.
 */
export type PrimitiveHandler = (config: any, context: ExecutionContext) => unknown

export interface Registry {
  tools: ReadonlyMap<string, ToolImplementation>
  callbacks: ReadonlyMap<string, Callback>
  steps: ReadonlyMap<string, PrimitiveHandler>
  models: ModelResolver
  /** The MCP servers of the config, if it has any. */
  mcp?: McpPool
  /** Most UTF-16 units of one model answer, for agents that set no limit. */
  answerChars?: number
  /** USD per million tokens, by the model's name in YAML. A model that is missing here has no known price. */
  pricing?: ReadonlyMap<string, Pricing>
}

/** USD per million tokens. */
export interface Pricing {
  input: number
  output: number
}

export interface ModelResolver {
  /** Used for steps that name no model. */
  readonly defaultModel?: string
  /** The prefixes that may come before the colon. */
  readonly providers: readonly string[]
  /** Throws `unknown-model` or `missing-key` before anything is sent. */
  resolve(name: string): LanguageModel
}
