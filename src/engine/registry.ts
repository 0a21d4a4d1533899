/** The engine's dependencies: models, tools, callbacks and step types, registered by name. */
import type { LanguageModel, ModelResolver, Pricing } from '../models/language-model.ts'
import type { Part } from '../part/part.ts'
import type { RunUser } from '../part/principal.ts'
import type { Usage } from '../part/usage.ts'
import type { InputRequest } from '../part/request-part.ts'
import type { Processes } from '../processes/processes.ts'
import type { SandboxPool } from '../script/sandbox.ts'
import type { McpPool } from '../tools/mcp/pool.ts'
import type { ToolImplementation } from '../tools/tool.ts'
import type { SkillFiles } from './skills.ts'
import { builtinSteps } from '../pipeline/names.ts'
import type { Known } from '../pipeline/pipeline.ts'

/** A function that keys such as `onFinish` name (see docs/yaml.md). Its errors become `warning` parts of the run. */
export type Callback = (event: any) => unknown

/** The second argument of a custom step type, following the Beddel contract `(config, context) => Promise<Response | value>`. */
export interface ExecutionContext {
  input: Record<string, unknown>
  variables: Map<string, unknown>
  signal: AbortSignal
  runId: string
  threadId: string
  /** Who started the run, or forked it. Absent: it belongs to no one. */
  user?: RunUser
  /** Adds a part to the run under this step, for example `data` for the client. */
  emit(part: Part): void
  tools: ReadonlyMap<string, ToolImplementation>
  /** A model by its name in YAML. */
  model(name: string): LanguageModel
  /**
   * Asks a person or a client for a value. The run waits for it, even across a restart, and then calls the handler again from its start: requests
   * that have a reply return it at once. So the code before a request must be safe to repeat, and the handler must make the same requests in the
   * same order, and none in the middle of a text that it streams.
   */
  request(question?: Question): Promise<QuestionAnswer>
}

/** The question of a step. */
export interface Question extends Pick<InputRequest, 'reason' | 'message' | 'schema' | 'metadata'> {
  /** ms to reply. Default: that of all requests. */
  timeout?: number
}

/** `closed`: no reply came in time, or the run cannot wait. */
export type QuestionAnswer =
  | { outcome: 'answered'; value: unknown }
  | { outcome: 'cancelled' }
  | { outcome: 'closed'; reason: string }

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
  /** The child processes of CLI agents. Absent at the edge and in browsers. */
  processes?: Processes
  /** Reads the skills of agents. Absent where no folder of agents is read. */
  skills?: SkillFiles
  /** Answers the engine's own tools from a recording. */
  playTool?: (name: string, tool: ToolImplementation) => ToolImplementation
  /** Runs scripts. Absent at the edge and in browsers. */
  sandbox?: SandboxPool
  /** The earlier usage of a CLI agent's session, for transcripts whose earlier runs are elsewhere. */
  usedBefore?: (sessionId: string) => Usage | undefined
  /** Maximum UTF-16 units of one model answer, for agents that set no limit. */
  answerChars?: number
  /** Maximum tool calls of one model answer, for agents that set no limit. */
  toolCalls?: number
  /** USD per million tokens, by the model's name in YAML. A model that is missing here has no known price. */
  pricing?: ReadonlyMap<string, Pricing>
  /** Spans of runs are exported, so a step passes its own span to its callees. */
  traces?: boolean
}

/** The names that a pipeline may use here. Agents are not included. */
export function namesOf({ tools, callbacks, steps, models, mcp, pricing }: Registry): Known {
  const windows = [...(models.windows?.keys() ?? [])]
  return {
    stepTypes: [...new Set([...builtinSteps, ...steps.keys()])],
    replaced: builtinSteps.filter((type) => steps.has(type)),
    tools: [...tools.keys()],
    callbacks: [...callbacks.keys()],
    providers: models.providers,
    mcpServers: mcp?.names ?? [],
    models: [...new Set([models.defaultModel ?? [], windows, [...(pricing?.keys() ?? [])]].flat())],
    windows,
    hasDefaultModel: models.defaultModel !== undefined,
  }
}
