/**
 * What can happen in a run. Long because it is the one list of all parts, with what each of them means.
 *
 * A `Part` is one event. Its core is the AI SDK's `LanguageModelV3StreamPart`, member for member, because every
 * provider already speaks it; around it stand the parts a run needs. Producers (models, steps, CLI agents) yield
 * parts; the runner puts each into an envelope (`entry.ts`) and the log keeps it. The legal order is `grammar.ts`.
 * Three rules hold everywhere:
 * - a part carries only what is new: messages, totals, open requests are folds over the log;
 * - failure is a part, never a throw, once a run has started;
 * - the outcome of a tool call is always a `tool-result`: see {@link ToolOutcome}.
 */
import type { LanguageModelV3StreamPart, LanguageModelV4StreamPart, SharedV3ProviderMetadata } from '@ai-sdk/provider'
import type { ErrorValue } from './error.ts'
import type { Message, ToolSpec } from './message.ts'
import type { ResponseHead } from './response-head.ts'
import type { CallSettings } from './settings.ts'
import type { Usage } from './usage.ts'

type V3<T extends LanguageModelV3StreamPart['type']> = Extract<LanguageModelV3StreamPart, { type: T }>
type V4<T extends LanguageModelV4StreamPart['type']> = Extract<LanguageModelV4StreamPart, { type: T }>

/** What a provider added to a part, by its name. */
export type ProviderMetadata = SharedV3ProviderMetadata
/** Why a model stopped: `unified` is one of a few words, `raw` the provider’s own. */
export type FinishReason = V4<'finish'>['finishReason']

/** File contents: base64 text or bytes (V3), or a URL (what V4 adds). Recorded as base64. */
export type FileData = string | Uint8Array | { type: 'url'; url: string }

/**
 * How a tool call ended when it did not simply return. Absent: it returned (`isError: false`) or threw (`isError: true`).
 * `unavailable`: it had started and its result is lost: nobody may assume that it ran, nor that it did not.
 * `handed-over`: the client that asked was given the call; its answer, if any, comes with a new run.
 */
export type ToolOutcome = 'denied' | 'aborted' | 'unavailable' | 'handed-over'

interface CallName {
  /** What the provider calls it, where the id was used already by a call of another step. */
  providerCallId?: string
}

/**
 * What a model may say: V3 verbatim, and what only V4 has as optional extras. V4's `ping` is dropped at the door.
 * Text and reasoning ids are made unique in the run. Tool-call ids stay the provider's, unless another step's calls have used
 * the id already; within a step they may come again, and are keyed by path.
 */
export type ModelPart =
  /** A model has accepted the request; `warnings` says what it will not do. */
  | V3<'stream-start'>
  /** What the provider calls its answer: `id`, `modelId`, `timestamp`. */
  | V3<'response-metadata'>
  /** A block of the answer's text begins, under an `id`. */
  | V3<'text-start'>
  /** `delta`: the next piece of the text block `id`. */
  | V3<'text-delta'>
  /** The text block `id` is complete; `citations` where a provider gives them. */
  | (V3<'text-end'> & Pick<V4<'text-end'>, 'citations'>)
  /** A block of the model's thoughts begins, under an `id`. */
  | V3<'reasoning-start'>
  /** `delta`: the next piece of the thoughts `id`. */
  | V3<'reasoning-delta'>
  /** The thoughts `id` are complete; a provider's signature is in `providerMetadata`. */
  | V3<'reasoning-end'>
  /** The model begins to write the arguments of a call: `id`, `toolName`. */
  | (V3<'tool-input-start'> & Pick<V4<'tool-input-start'>, 'inputEncoding'> & CallName)
  /** `delta`: the next piece of the arguments' JSON. */
  | V3<'tool-input-delta'>
  /** The arguments are complete. */
  | V3<'tool-input-end'>
  /** The model calls a tool: `toolCallId`, `toolName`, `input` (JSON as text); `providerExecuted` when the provider runs it itself. */
  | (V3<'tool-call'> & CallName)
  /** How a call ended: `result`, `isError`, `outcome`; `preliminary` ones come before it. */
  | (V3<'tool-result'> & { outcome?: ToolOutcome })
  /** The provider asks whether it may run a tool of its own. */
  | V3<'tool-approval-request'>
  /** Something the answer is based on: a `url` or a document, with its `title`. */
  | V3<'source'>
  /** A file that the model made: `mediaType`, `data`. */
  | (Omit<V3<'file'>, 'data'> & { data: FileData })
  /** A file that belongs to the model's thoughts. */
  | { type: 'reasoning-file'; mediaType: string; data: FileData; providerMetadata?: ProviderMetadata }
  /** What only one provider has; its `kind` is `provider.name`. */
  | { type: 'custom'; kind: string; providerMetadata?: ProviderMetadata }
  /** The model call is complete: `finishReason`, `usage`. */
  | (Omit<V3<'finish'>, 'finishReason'> & { finishReason: FinishReason })
  /** A provider's own event, where it was asked for. */
  | V3<'raw'>
  /** Something failed: `error` with `code` and `message`. */
  | V3<'error'>

export const outcomes = ['completed', 'failed', 'aborted', 'budget-exceeded', 'timed-out', 'interrupted'] as const
/** How a run ended. */
export type Outcome = (typeof outcomes)[number]

/** `run-start`: the first entry of every run; enough to run it again without the agent's file. */
export interface RunStart {
  type: 'run-start'
  runId: string
  agent: string
  /** The pipeline's YAML text: a resumed run uses it, not the reloaded file. */
  pipeline: string
  threadId: string
  parentRunId?: string
  /** Who asked: a wire's name, or `library`, `cli`, `api`. */
  protocol: string
  /** Ids the client gave (message id, chat id, its own run id): labels, never keys of ours. */
  labels?: Record<string, string>
  /** What the request brought. With `previousRunId` its `messages` are only the new ones. */
  input: Record<string, unknown>
  /** `history: server`: the conversation before is that of this run of the thread, with what it added. */
  previousRunId?: string
  /** A client's tool cannot be waited for here: its calls are handed over. */
  handOver?: boolean
  /** What the request asks of the answering model. */
  settings?: CallSettings
}

/**
 * `step-start`: the envelope's `step` is its path: `main/<id>`, `after/<id>`; one model call and one tool call are each
 * a step below (`main/<id>/<n>`). `answer: true`: what follows under this path is what the client asked for.
 */
export interface StepStart {
  type: 'step-start'
  stepType: string
  /** From 1; grows only after a crash. */
  attempt: number
  answer?: true
  /** For a tool call: which. */
  toolCallId?: string
  toolName?: string
  /** For a call of another agent: which, and its YAML text, so that a run that goes on calls the same. */
  agent?: string
  pipeline?: string
  /** For branches whose answers come one after the other where a wire has one text: their names in that order. */
  order?: string[]
  /**
   * The answer is JSON. Of the text under this path only that of a model call which calls no tool of ours, and fits, is the
   * answer: what stands before a tool call, and a try that a `retry` or an error closes, is shown to no client.
   */
  object?: true
  /** For a loop over a list: that list as it was when the loop began. Its rounds take these, whatever comes later. */
  items?: readonly unknown[]
  head?: ResponseHead
}

/** `step-finish`: exactly one for each `step-start`; `error` when the step failed or was stopped. `duration` in ms. */
export interface StepFinish {
  type: 'step-finish'
  duration: number
  result?: unknown
  usage?: Usage
  finishReason?: string
  error?: ErrorValue
}

/**
 * `prompt`: one per model call, before its output. `messages` holds what this model was told that the log under the
 * same parent does not hold yet: everything on the first call, usually nothing after; the turns of that parent are the rest.
 */
export interface Prompt {
  type: 'prompt'
  stage: string
  model: string
  system?: string
  messages: Message[]
  tools?: ToolSpec[]
}

/** `answer-end`: the answer is complete. Wires send their terminal frame here; `after` steps change nothing of it. */
export interface AnswerEnd {
  type: 'answer-end'
  finishReason: string
  usage: Usage
}

/** `usage`: what one model call spent. Totals are the sum of these. `cost` in USD, absent when no price is known. */
export interface UsagePart {
  type: 'usage'
  model: string
  usage: Usage
  cost?: number
}

/** `request`: something only a person or a client can give. Answered at most once, by any protocol. */
export interface RequestPart {
  type: 'request'
  requestId: string
  kind: 'tool' | 'approval'
  toolCallId: string
  toolName: string
  input: unknown
  /** Epoch ms after which the request is closed as unavailable. */
  deadline: number
}

/** `response`: how a request ended: its one answer, or `closed` with the reason (deadline, new turn, end of the run). */
export interface ResponsePart {
  type: 'response'
  requestId: string
  outcome: 'answered' | 'closed'
  answer?: Answer
  reason?: string
  protocol?: string
}

/** What a client says to a request: a tool's output (or error), or whether it approves. */
export type Answer =
  | { kind: 'tool'; output: unknown; isError?: boolean }
  | { kind: 'approval'; approved: boolean; reason?: string }

/** `suspend`: no branch can go on without an answer. HTTP protocols close their stream here; the log stays open. */
export interface Suspend {
  type: 'suspend'
  requests: string[]
}

/** `resume`: the run goes on; what is new in the request that woke it (tools, context, state) becomes `$input`. */
export interface Resume {
  type: 'resume'
  protocol: string
  labels?: Record<string, string>
  input?: Record<string, unknown>
}

/**
 * `retry`: a model call failed before its first content and is tried again after `delay` ms. With the code `bad-output`:
 * its answer was not the JSON that was asked for, and the next call is told what was wrong with it.
 */
export interface Retry {
  type: 'retry'
  /** The try that comes next, from 2; 1 with another model. */
  attempt: number
  /** The model that is asked next, when it is another one. */
  model?: string
  delay: number
  error: ErrorValue
}

/** `warning`: something went wrong beside the run and changed nothing (a callback threw, an exporter failed). */
export interface Warning {
  type: 'warning'
  code: string
  message: string
}
/** `session-info`: which session of a CLI agent this is. */
export interface SessionInfo {
  type: 'session-info'
  sessionId: string
  model?: string
  providerMetadata?: ProviderMetadata
}
/** `cli-output`: a line of a CLI agent that is no event, as it came. */
export interface CliOutput {
  type: 'cli-output'
  stream: 'stdout' | 'stderr'
  raw: string
}
/** `data`: a step's own event for the client. */
export interface Data {
  type: 'data'
  name: string
  id?: string
  data: unknown
  /** Shown once, not kept in the client's message. */
  transient?: boolean
}

/** `step-reset`: after a crash: all that the named attempt under this path had emitted is superseded and counts as closed. */
export interface StepReset {
  type: 'step-reset'
  attempt: number
}

/** `run-end`: exactly one, last, whatever happened. */
export interface RunEnd {
  type: 'run-end'
  outcome: Outcome
  output?: unknown
  usage: Usage
  /** USD; absent when any call's price is unknown. */
  cost?: number
  error?: ErrorValue
}

/** What a run says around what its models say. */
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
  | StepReset
  | RunEnd

/** One event of a run. */
export type Part = ModelPart | RunPart
/** The name of a part: what stands in its `type`. */
export type PartType = Part['type']
