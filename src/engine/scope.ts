/** The context of the engine's steps: the run's state, writer and signal, and how to wait for a client. */
import { fromErrorValue, toErrorValue, toMillraceError, type ErrorValue, MillraceError } from '../part/error.ts'
import type { EntryOf, RecordedPart } from '../part/entry.ts'
import type { Store } from '../part/log.ts'
import type { Part, StepFinish, StepStart } from '../part/part.ts'
import type { RequestPart } from '../part/request-part.ts'
import type { StepKind } from '../part/step-kind.ts'
import type { Scope as ReferenceValues } from '../pipeline/evaluate.ts'
import type { Pipeline, StepTimeouts } from '../pipeline/pipeline.ts'
import type { McpPool } from '../tools/mcp/pool.ts'
import { type Attribute, nameFailure, type StepName } from './step-name.ts'
import type { AgentSlot, AgentSlots } from './agent-slots.ts'
import type { BranchCounter } from './branch-counter.ts'
import type { RunSteps } from './container.ts'
import type { Steering } from './steering.ts'
import type { Limit, Speaking, DefaultTimeouts, SilenceLimits } from './limits.ts'
import type { Registry } from './registry.ts'
import { type RunState, missingUsages } from './state.ts'
import type { ModelToolCall } from '../fold/reply-messages.ts'
import { traceparentAt } from '../fold/trace-place.ts'

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never

export interface Scope {
  readonly runId: string
  readonly threadId: string
  readonly state: RunState
  readonly registry: Registry
  /** The MCP servers of the config, with the headers from the run's requests. */
  readonly mcp: McpPool | undefined
  /** The store of all runs, including this one. */
  readonly store: Pick<Store, 'log' | 'runs' | 'records'>
  /** `$input`: the request's input, with the earlier conversation. */
  readonly input: Record<string, unknown>
  /** The input as of an entry of the log. */
  inputAt(seq: number): Record<string, unknown>
  readonly variables: Map<string, unknown>
  readonly env: Readonly<Record<string, string>>
  /** Aborts when the run must end. */
  readonly signal: AbortSignal
  /** Calls of client tools are handed over instead of waited for, and the run completes. */
  readonly handOver: boolean
  /** The run can wait for an approval: its store is durable. */
  readonly canWait: boolean
  /** ms that a client has to reply to a request. */
  readonly requestDeadline: number
  now(): number
  emit(path: string, part: Part): void
  ready(): Promise<void> | undefined
  stored(): Promise<void>
  /** A block id that is unique in the run, even across owners. */
  newId(): string
  /** Runs tasks concurrently. Settles when all have settled or `abandoned` does, then throws the first failure. */
  fork(tasks: (() => Promise<void>)[], abandoned?: Promise<void>): Promise<void>
  /** The run's branches, for a step that starts tasks one by one. */
  readonly branches: BranchCounter
  /** Call this before a new step begins: see `Gate.pass`. */
  pass(): Promise<never> | undefined
  /**
   * Records a request, unless it is open, and waits for its reply. Throws {@link Suspended} if the whole run must wait. `holds`: the run does not wait as
   * long as this does, because something in memory would be lost.
   */
  request(
    path: string,
    request: DistributiveOmit<RequestPart, 'type'>,
    signal: AbortSignal,
    how?: 'holds',
  ): Promise<EntryOf<'response'>>
  /** The input of a tool call for its tool: not redacted, as long as this process executes the run. */
  inputOf(call: ModelToolCall): string
  /** A part as the log has it: redacted. */
  toLogged(part: RecordedPart): RecordedPart
  /** Budgets and timeouts that apply here, the run's own first. */
  readonly limits: readonly Limit[]
  /** Model calls in progress, by path. */
  readonly speaking: Map<string, Speaking>
  /** The timeouts of the agent file and of the enclosing steps; `step` is the file's. */
  readonly timeouts: StepTimeouts
  /** In a called agent: the callers' limits, which apply in addition to `timeouts`. */
  readonly callerTimeouts: SilenceLimits
  /** Maximum UTF-16 units of one model answer. */
  readonly answerChars: number
  /** Maximum tool calls of one model answer. */
  readonly toolCalls: number
  /** Timeouts for agents that set none. */
  readonly defaultTimeouts: DefaultTimeouts
  readonly attribute: Attribute
  /** The pipeline's step that this scope belongs to. */
  readonly step?: StepName
  /** The number of enclosing calls of agents. */
  readonly depth: number
  /** Below these paths at most so many agent tools are called: of the run, and of each called agent that sets a limit. */
  readonly agentCallLimits: readonly { root: string; calls: number }[]
  readonly agentSlots: AgentSlots
  /** The place of the innermost agent tool around this scope. */
  readonly agentSlot?: AgentSlot
  /** Client tools are unavailable: nobody listens, or it is an agent tool in a run that hands calls over to its client. */
  readonly cannotAsk?: boolean
  /** The step is inside an agent tool that may call the tools of the request. */
  readonly offersRequestTools?: boolean
  /** With `sticky`: the agent that has answered the last run of the thread. */
  answeredBefore?(): Promise<string | undefined>
  /** The agent to which this one can give the conversation back. */
  readonly handsBackTo?: string
  /** Messages that come while the run is active. Called agents get none. */
  readonly steering?: Pick<Steering, 'waits' | 'deliver'> | undefined
  readonly runSteps: RunSteps
  /** Another agent, by id or alias. */
  agent(id: string): Pipeline | undefined
  /** Schedules the `after` steps of a called agent. They run when the answer has ended, before the caller's own. */
  afterwards(scope: Scope, pipeline: Pipeline, path: string): void
  /** Calls `onAbort` of every open `llm` and `router` step at or under a path, before the steps are closed from outside. */
  notifyAbort(root: string, error: unknown): Promise<void>
  /** Calls a registered callback. If it throws, a `warning` is recorded. */
  invoke(name: string | undefined, event: unknown): Promise<void>
  /** Schedules a task for when the answer has ended, before the `after` steps. */
  defer(task: () => Promise<void>): void
}

/** Unwinds a run that waits for a client. It is not an error: nothing is closed or reported. */
export class Suspended extends Error {
  override readonly name = 'Suspended'
}

const recorded = new WeakSet<object>()

/** Emits the `error` part of a failure, only once however many steps rethrow it. */
export function emitError(scope: Scope, path: string, error: unknown): void {
  if (typeof error === 'object' && error !== null) {
    if (recorded.has(error)) return
    recorded.add(error)
  }
  scope.emit(path, { type: 'error', error: toErrorValue(error, 'step-failed') })
}

/** Recreates a failure that is already in the log, so that a recovered run can throw it again. */
export function asRecorded(value: ErrorValue): MillraceError {
  const error = fromErrorValue(value)
  recorded.add(error)
  return error
}

/** Converts any thrown value into an error object that `tell` can recognize later. */
export function toError(thrown: unknown): MillraceError {
  return toMillraceError(thrown, 'step-failed')
}

/** Converts a failure at a path. If the path is the step's own, the step's name is added. */
export function toFailure({ step }: Scope, path: string, thrown: unknown): MillraceError {
  const error = toError(thrown)
  if (step?.path !== path) return error
  const named = nameFailure(step, error)
  if (recorded.has(error)) recorded.add(named)
  return named
}

/** A scope whose steps begin even if the run is to be released: the code around them could not be called a second time. */
export function unheld(scope: Scope): Scope {
  return within(scope, { pass: () => undefined })
}

/** A copy of a scope with some changes. */
export function within(scope: Scope, changes: Partial<Scope>): Scope {
  return { ...scope, ...changes }
}

/** The fields of a step's start. Every new one has a kind. */
export type NewStep = Omit<StepStart, 'type' | 'attempt' | 'kind'> & { kind: StepKind }

export type Finished<T> = { value: T } & Pick<StepFinish, 'result' | 'usage' | 'finishReason'>

/**
 * Emits a step's start and finish around `body`. A step that is already open in the log is not started again. On a failure, emits
 * the error, closes everything open inside and rethrows. If the run is suspended or stopped, the step stays open; the run's end
 * closes it.
 */
export async function inStep<T>(
  scope: Scope,
  path: string,
  start: NewStep,
  body: () => Promise<Finished<T>>,
): Promise<T> {
  const { state, now, emit } = scope
  if (!state.open.steps.has(path)) {
    const held = scope.pass()
    if (held !== undefined) await held
    emit(path, { type: 'step-start', attempt: (state.resets.get(path) ?? 0) + 1, ...start })
  }
  try {
    const { value, ...finish } = await body()
    if (scope.signal.aborted) throw scope.signal.reason
    const ended = now()
    const duration = Math.max(0, ended - (state.open.steps.get(path)?.timestamp ?? ended))
    emit(path, { type: 'step-finish', duration, ...finish })
    return value
  } catch (thrown) {
    if (thrown instanceof Suspended || scope.signal.aborted) throw thrown
    const error = toFailure(scope, path, thrown)
    closeUnder(scope, path, error)
    throw error
  }
}

/** Emits a failure and closes everything that is open at or under a path. `isLeftOpen`: except the step at the path itself. */
export function closeUnder(scope: Scope, path: string, error: Error, isLeftOpen = false): void {
  const { state, now, emit } = scope
  if (!state.open.steps.has(path)) return
  emitError(scope, path, error)
  for (const { step, part } of missingUsages(state, path)) emit(step, part)
  const closing = { root: path, now: now(), outcome: 'aborted', error: toErrorValue(error, 'step-failed') } as const
  for (const { step, part } of state.open.closing(closing)) {
    if (!isLeftOpen || step !== path || part.type !== 'step-finish') emit(step, part)
  }
}

/** The values of references: `variables` may be others than the scope's. */
export function valuesOf({ input, variables, env, state }: Scope): ReferenceValues {
  return { input, variables, env, user: state.start?.user }
}

/** The MCP servers of the config; throws when there are none. */
export function mcpOf({ mcp }: Scope): McpPool {
  if (mcp !== undefined) return mcp
  throw new MillraceError('unknown-mcp-server', 'The config has no MCP servers. Add `mcpServers` to it.')
}

/**
 * The trace context that a step passes to model servers, tools and programs, so that their spans are below its own. Without span export, the
 * caller's context is passed on unchanged, because our span would not exist.
 */
export function traceparentOf(
  { registry, state }: Pick<Scope, 'registry' | 'state'>,
  path: string,
): string | undefined {
  const { start, resets } = state
  if (start === undefined || registry.traces !== true) return start?.traceparent
  return traceparentAt(start, path, resets)
}
