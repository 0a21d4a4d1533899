/**
 * The events of a run.
 *
 * A `Part` is one event. The core is the AI SDK's `LanguageModelV3StreamPart`, member for member, because every
 * provider already emits it; the other parts belong to the run. Producers (models, steps, CLI agents) yield parts; the
 * runner puts each into an envelope (`entry.ts`) and appends it to the log. `grammar.ts` defines the legal order.
 * Three rules always apply:
 * - a part carries only new data: messages, totals and open requests are folds over the log;
 * - failure is a part, never a throw, once a run has started;
 * - the outcome of a tool call is always a `tool-result`: see {@link ToolOutcome}.
 */
import type { ErrorValue } from './error.ts'
import type { Message, ToolSpec, UserMessage } from './message.ts'
import type { ModelPart, ProviderMetadata } from './model-part.ts'
import type { RequestPart, ResponsePart } from './request-part.ts'
import type { StepKind } from './step-kind.ts'
import type { Actor, RunUser } from './principal.ts'
import type { Usage } from './usage.ts'

export const outcomes = ['completed', 'failed', 'aborted', 'budget-exceeded', 'timed-out', 'interrupted'] as const
/** How a run ended. */
export type Outcome = (typeof outcomes)[number]

/** `run-start`: the first entry of every run. It has everything needed to run it again without the agent's file. */
export interface RunStart {
  type: 'run-start'
  runId: string
  agent: string
  /** The pipeline's YAML text. A resumed run uses it instead of the file. */
  pipeline: string
  /** The text is not that of the agent's file: it came with the request, or with an earlier one of the conversation. The next run has it too. */
  ownPipeline?: boolean
  threadId: string
  parentRunId?: string
  /**
   * The run is a fork: its entries up to this one are those of the other run, and it goes on by itself from there. `at`: when it was forked, epoch
   * ms. Its times count from then.
   */
  forkedFrom?: { runId: string; seq: number; at?: number }
  /**
   * Entries up to this `seq` were recorded elsewhere: the run is foreign, and what they name runs here only if somebody here says so. An import
   * sets it, whatever the recording says.
   */
  foreign?: number
  /** How the run was started: a wire's name, or `library`, `cli`, `api`, `page`, `mcp`. */
  protocol: string
  /** Who started it, or forked it. Absent: it belongs to no one. */
  user?: RunUser
  /** Ids from the client (message id, chat id, its own run id). Millrace never uses them as keys. */
  labels?: Record<string, string>
  /** Options of the client's protocol (its usage, an older version), so that a replay sends the same. Absent: nothing in particular. */
  wireOptions?: Record<string, unknown>
  /** The caller's place in its trace (W3C Trace Context), from the header `traceparent` of the request. */
  traceparent?: string
  /** The input of the request. With `previousRunId`, `messages` has only the new ones. */
  input: Record<string, unknown>
  /** With `history: server`: the thread's run whose conversation, including its answer, this run continues. */
  previousRunId?: string
  /** Whether calls of client tools are handed over, because this run cannot wait for their results. */
  handOver?: boolean
  /** Nobody listens for calls of client tools: their results are `unavailable` at once. */
  noClientTools?: boolean
  /** Settings from the request for the answering model. */
  settings?: CallSettings
  /** MCP servers for which the request brought headers of its own. The headers are not recorded. */
  ownHeaders?: string[]
}

/**
 * `step-start`: a step starts. The envelope's `step` is its path: `main/<id>` or `after/<id>`. Each model call and each tool
 * call is a step below that (`main/<id>/<n>`). `answer: true`: the output under this path is the answer for the client.
 */
export interface StepStart {
  type: 'step-start'
  /** The name of the step's type. A program may have types of its own with any name. */
  stepType: string
  /**
   * The kind of the step, whatever its type is called: `model-call`, `tool-call`, `client-tool`, `approval`; `tool-loop`, `router`;
   * `parallel`, `container`; `memory`, `task`; `custom` for code of the program. Logs of older versions have none.
   */
  kind?: StepKind
  /** Counts from 1; incremented only after a crash. */
  attempt: number
  answer?: true
  /** For a tool call: the id of the call. */
  toolCallId?: string
  toolName?: string
  /** For a call of another agent: its id, and its YAML text in `pipeline`, which a resumed run uses. With `toolCallId`: a model called it as a tool. */
  agent?: string
  pipeline?: string
  /** The called agent takes over: its answer is that of the loop. The result of the call comes first, right after this entry. */
  handoff?: true
  /** For parallel branches that answer: their names, in the order in which wires with a single text send them. */
  order?: string[]
  /**
   * The answer is JSON. Only the text of a model call that calls no server or client tool and returns matching JSON is the
   * answer. Clients do not see text before a tool call, or attempts that end in a `retry` or an error.
   */
  object?: true
  /** For a loop over a list: the list as it was when the loop started. The iterations use it even if the source changes. */
  items?: readonly unknown[]
  /** For a summary: how many messages of the loop's prompt it covers. See {@link Summarized}. */
  covers?: number
  /** For the run of a script, a step below the script's: the calls that the script makes are recorded here. */
  script?: ScriptStart
  head?: ResponseHead
}

/** What a script needs to make the same calls again. */
export interface ScriptStart {
  /** Engine and version. */
  engine: string
  /** Of `Math.random`. */
  seed: string
}

/** `step-finish`: exactly one for each `step-start`. `error` is set if the step failed or was stopped. `duration` is in ms. */
export interface StepFinish {
  type: 'step-finish'
  duration: number
  result?: unknown
  usage?: Usage
  finishReason?: string
  error?: ErrorValue
}

/**
 * `prompt`: one per model call, before its output. `messages` has the messages of the request that the log does not have yet
 * under the same parent: all of them for the first call, usually none after that. The rest are the turns of that parent.
 */
export interface Prompt {
  type: 'prompt'
  stage: string
  model: string
  system?: string
  messages: Message[]
  /**
   * The handles of long results that the log has under the same parent, and that this call and the later ones are told shortened: see
   * `fold/long-results.ts`. Those in `messages` are shortened there.
   */
  shortened?: string[]
  tools?: ToolSpec[]
  /** With which settings the model was called. Absent: those of the provider. A format, headers and options of a provider are not recorded. */
  settings?: CallSettings
}

/** `answer-end`: the answer is complete. Wires send their terminal frame here; `after` steps do not change the answer. */
export interface AnswerEnd {
  type: 'answer-end'
  finishReason: string
  usage: Usage
}

/**
 * `usage`: the usage of one model call. Totals are the sum of these. `cost` is in USD, absent if the price is unknown. CLI agents report
 * theirs in pieces: the last one corrects the sum, so its counts may be negative.
 */
export interface UsagePart {
  type: 'usage'
  model: string
  usage: Usage
  cost?: number
}

/** `suspend`: no branch can continue without an answer. HTTP protocols close their stream here; the log stays open. */
export interface Suspend {
  type: 'suspend'
  requests: string[]
}

/** `resume`: the run continues. New values in the request that resumed it (tools, context, state) are merged into `$input`. */
export interface Resume {
  type: 'resume'
  protocol: string
  labels?: Record<string, string>
  input?: Record<string, unknown>
  /** A fork goes on as this agent, whose YAML text is in `pipeline`. */
  agent?: string
  pipeline?: string
  /** The text came with the request: the next run of the fork's conversation has it too. */
  ownPipeline?: boolean
  /** MCP servers for which the request brought headers of its own. The headers are not recorded. */
  ownHeaders?: string[]
}

/**
 * `retry`: a model call failed before its first content and is retried after `delay` ms. With the code `bad-output`, its
 * answer was not the requested JSON, and the next call tells the model the fault.
 */
export interface Retry {
  type: 'retry'
  /** Number of the next attempt, from 2; 1 when another model is tried. */
  attempt: number
  /** The model of the next attempt, if it is another one. */
  model?: string
  delay: number
  error: ErrorValue
}

/** `warning`: something failed without affecting the run (a callback threw, a raw log is incomplete). */
export interface Warning {
  type: 'warning'
  code: string
  message: string
}
/** `session-info`: the session of a CLI agent. */
export interface SessionInfo {
  type: 'session-info'
  sessionId: string
  model?: string
  providerMetadata?: ProviderMetadata
}
/** `cli-output`: an output line of a CLI agent that is not an event, unchanged. */
export interface CliOutput {
  type: 'cli-output'
  stream: 'stdout' | 'stderr'
  raw: string
}
/** `data`: a custom event of a step for the client. */
export interface Data {
  type: 'data'
  name: string
  id?: string
  data: unknown
  /** Sent to the client, but not kept in its message. */
  transient?: boolean
}

/** What became of a message that the model of its run was not told: see {@link SentMessage}. */
export const messageOutcomes = ['dropped', 'next', 'withdrawn'] as const

/**
 * `message`: a message that was sent while the run was active. Without an `outcome`, the tool loop at `step` tells it to the model as a plain user
 * message: behind everything that is in the log of this loop, before its next model call.
 */
export interface SentMessage {
  type: 'message'
  /** From the sender, or made by the server. Unique in the run. */
  id: string
  content: UserMessage['content']
  protocol: string
  /** Who sent it. Absent: it is not known. */
  by?: Actor
  /** When it was accepted, epoch ms. It waited from then until the time of this entry. */
  sentAt: number
  /** Ids from the client. */
  labels?: Record<string, string>
  /**
   * The request that brought it reads the answer from here on. Protocols with one answer for each request end the answer before at this entry, and
   * begin another one.
   */
  turn?: true
  /**
   * Absent: delivered. `dropped`: the run was stopped first. `next`: it is in the first message of the run `runId`, because this one has ended.
   * `withdrawn`: its sender took it back. The model of this run is told none of these.
   */
  outcome?: (typeof messageOutcomes)[number]
  runId?: string
}

/** Why a conversation was summarized: see {@link Summarized}. */
export const summaryReasons = ['full', 'overflow', 'earlier'] as const

/**
 * `summarized`: from here on the tool loop at `step` tells its model the beginning of the conversation in fewer words. Nothing in the log changes,
 * only what the next calls are told: the leading system messages and the first user message, then `text` as a user message, then what is not covered.
 */
export interface Summarized {
  type: 'summarized'
  /** How many messages are covered, from the first one of the loop's conversation on, as the log has it. A later one covers more. */
  upTo: number
  /** Absent: it could not be made. The covered messages are left out. */
  text?: string
  /** Estimated tokens of the next prompt, with and without what is covered. */
  before: number
  after: number
  /** `full`: by the estimate. `overflow`: the provider has refused the prompt. `earlier`: an earlier run of the thread has made it. */
  reason: (typeof summaryReasons)[number]
  /** Of the covered messages, by which later runs of the thread find it. */
  hash: string
  /** The handles of long results that are told shortened from here on. */
  shortened?: string[]
}

/** `step-reset`: after a crash, everything that this attempt emitted under this path is superseded and counts as closed. */
export interface StepReset {
  type: 'step-reset'
  attempt: number
}

/** `run-end`: the last entry of every run; exactly one, whatever the outcome. */
export interface RunEnd {
  type: 'run-end'
  outcome: Outcome
  output?: unknown
  usage: Usage
  /** In USD; absent if the price of any call is unknown. */
  cost?: number
  error?: ErrorValue
}

/** The parts that a run adds to those of its models. */
export type RunPart =
  | RunStart
  | StepStart
  | StepFinish
  | Prompt
  | AnswerEnd
  | UsagePart
  | RequestPart
  | ResponsePart
  | Suspend
  | Resume
  | Retry
  | Warning
  | SessionInfo
  | CliOutput
  | Data
  | SentMessage
  | Summarized
  | StepReset
  | RunEnd

/** One event of a run. */
export type Part = ModelPart | RunPart
/** The parts that a source may emit: a model, a stream that a step returns, the transcript of a CLI agent. */
export type SourcePart = ModelPart | UsagePart | Warning | SessionInfo | CliOutput | Data
/** The name of a part: the value of its `type`. */
export type PartType = Part['type']

/** The names of all part types. The compiler reports a missing one. */
export const partTypes: readonly string[] = Object.keys({
  'stream-start': true,
  'response-metadata': true,
  'text-start': true,
  'text-delta': true,
  'text-end': true,
  'reasoning-start': true,
  'reasoning-delta': true,
  'reasoning-end': true,
  'tool-input-start': true,
  'tool-input-delta': true,
  'tool-input-end': true,
  'tool-call': true,
  'tool-result': true,
  'tool-approval-request': true,
  source: true,
  file: true,
  'reasoning-file': true,
  custom: true,
  finish: true,
  raw: true,
  error: true,
  'run-start': true,
  'step-start': true,
  'step-finish': true,
  prompt: true,
  'answer-end': true,
  usage: true,
  request: true,
  response: true,
  suspend: true,
  resume: true,
  retry: true,
  warning: true,
  'session-info': true,
  'cli-output': true,
  data: true,
  message: true,
  summarized: true,
  'step-reset': true,
  'run-end': true,
} satisfies Record<Part['type'], true>)

/** The status and headers of a `Response` that is passed through, without connection-specific headers and `set-cookie`. */
export interface ResponseHead {
  status: number
  statusText?: string
  headers: [name: string, value: string][]
  /** The body is binary: it is in the `file` part that follows. */
  binary?: true
}

/** Model settings of a request. Settings in the agent's file override them. */
export interface CallSettings {
  temperature?: number
  topP?: number
  maxOutputTokens?: number
  stopSequences?: string[]
  seed?: number
  presencePenalty?: number
  frequencyPenalty?: number
  reasoning?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'
  /** Applies to the client's tools and to those of the file. */
  toolChoice?: 'auto' | 'none' | 'required' | { tool: string }
  /** The answer must be JSON, matching the schema if there is one. */
  responseFormat?: { type: 'json'; schema?: Record<string, unknown>; name?: string; description?: string }
  /** Provider-specific settings, by provider name. */
  providerOptions?: Record<string, Record<string, unknown>>
}
