/** What the engine's own steps work with: one run's state, its writer, its signal, and the ways to wait for a client. */
import { fromErrorValue, toErrorValue, toMillraceError, type ErrorValue, type MillraceError } from '../part/error.ts'
import type { EntryOf } from '../part/entry.ts'
import type { Store } from '../part/log.ts'
import type { Part, RequestPart, StepFinish, StepStart } from '../part/part.ts'
import type { Pipeline, StepTimeouts } from '../pipeline/pipeline.ts'
import type { Attribute } from './attribute.ts'
import type { Limit, Speaking } from './limits.ts'
import type { Registry } from './ports.ts'
import type { RunState } from './state.ts'
import { nameFailure, type StepName } from './step-name.ts'
import type { DefaultTimeouts, SilenceLimits } from './time-limits.ts'
import { missingUsages } from './unfinished.ts'

export interface Scope {
  readonly runId: string
  readonly threadId: string
  readonly state: RunState
  readonly registry: Registry
  /** Where the runs are, this one among them. */
  readonly store: Pick<Store, 'log' | 'runs'>
  /** `$input`: what the request brought, with the conversation before it. */
  readonly input: Record<string, unknown>
  /** The same as it stood at an entry of the log. */
  inputAt(seq: number): Record<string, unknown>
  readonly variables: Map<string, unknown>
  readonly env: Readonly<Record<string, string>>
  /** Aborts when the run must end. */
  readonly signal: AbortSignal
  /** Client tools cannot be waited for: their calls are handed over and the run completes. */
  readonly handOver: boolean
  /** ms that a client has to answer a request. */
  readonly requestDeadline: number
  now(): number
  emit(path: string, part: Part): void
  ready(): Promise<void> | undefined
  stored(): Promise<void>
  /** A block id that is unique in the run, also across owners. */
  newId(): string
  /** Runs tasks at once; settles when all have, or when they are abandoned. The first failure is thrown then. */
  fork(tasks: (() => Promise<void>)[], abandoned?: Promise<void>): Promise<void>
  /** Records a request (unless it is open already) and waits; throws {@link Suspended} when the whole run must wait. */
  request(path: string, request: Omit<RequestPart, 'type'>, signal: AbortSignal): Promise<EntryOf<'response'>>
  /** Budgets and timeouts that hold here, the run's own first. */
  readonly limits: readonly Limit[]
  /** Model calls under way, by path. */
  readonly speaking: Map<string, Speaking>
  /** What the agent file and the steps around set for every model call here; `step` is the limit of the file. */
  readonly timeouts: StepTimeouts
  /** In a called agent: what its callers set. Applies in addition to `timeouts`. */
  readonly callerTimeouts: SilenceLimits
  /** UTF-16 units that one model answer may have here. */
  readonly answerChars: number
  /** What holds where the agent sets nothing. */
  readonly defaultTimeouts: DefaultTimeouts
  readonly attribute: Attribute
  /** The step of a pipeline that this is the scope of. */
  readonly step?: StepName
  /** How many agents deep. */
  readonly depth: number
  /** Another agent, by id or alias. */
  agent(id: string): Pipeline | undefined
  /** Leaves the `after` steps of a called agent to be run once the answer has ended, before the caller's own. */
  afterwards(scope: Scope, pipeline: Pipeline, path: string): void
  /** Tells `onAbort` of every `llm` step that is open at or under a path and is about to be closed over its head. */
  tellAbort(root: string, error: unknown): Promise<void>
  /** Calls a registered callback; what it throws becomes a `warning`. */
  invoke(name: string | undefined, event: unknown): Promise<void>
  /** Runs once the answer has ended, before the `after` steps. */
  defer(task: () => Promise<void>): void
}

/** Unwinds a run that waits for a client. Not an error: nothing is closed, nothing is told. */
export class Suspended extends Error {
  override readonly name = 'Suspended'
}

const told = new WeakSet<object>()

/** Emits the one `error` part of a failure, however many steps it passes through on its way out. */
export function tell(scope: Scope, path: string, error: unknown): void {
  if (typeof error === 'object' && error !== null) {
    if (told.has(error)) return
    told.add(error)
  }
  scope.emit(path, { type: 'error', error: toErrorValue(error, 'step-failed') })
}

/** A failure that the log tells already, to be thrown again by the run that goes on behind it. */
export function toldBefore(value: ErrorValue): MillraceError {
  const error = fromErrorValue(value)
  told.add(error)
  return error
}

/** Whatever was thrown, as an object that `tell` knows again. */
export function toError(thrown: unknown): MillraceError {
  return toMillraceError(thrown, 'step-failed')
}

/** What something at a path failed with: as it is inside of a step, with the step's name where the step itself ends. */
export function toFailure({ step }: Scope, path: string, thrown: unknown): MillraceError {
  const error = toError(thrown)
  if (step?.path !== path) return error
  const named = nameFailure(step, error)
  if (told.has(error)) told.add(named)
  return named
}

/** The same scope with something else in it. */
export function within(scope: Scope, changes: Partial<Scope>): Scope {
  return { ...scope, ...changes }
}

export type Finished<T> = { value: T } & Pick<StepFinish, 'result' | 'usage' | 'finishReason'>

/**
 * Brackets a step. A step that the log holds open already (the run goes on) is not started again. A failure is told,
 * everything open below is closed, and it is thrown on. A suspended or stopped run is left open: its end closes all.
 */
export async function inStep<T>(
  scope: Scope,
  path: string,
  start: Omit<StepStart, 'type' | 'attempt'>,
  body: () => Promise<Finished<T>>,
): Promise<T> {
  const { state, now, emit } = scope
  if (!state.open.steps.has(path)) {
    emit(path, { type: 'step-start', attempt: (state.resets.get(path) ?? 0) + 1, ...start })
  }
  const duration = () => Math.max(0, now() - (state.open.steps.get(path)?.timestamp ?? now()))
  try {
    const { value, ...finish } = await body()
    if (scope.signal.aborted) throw scope.signal.reason
    emit(path, { type: 'step-finish', duration: duration(), ...finish })
    return value
  } catch (thrown) {
    if (thrown instanceof Suspended || scope.signal.aborted) throw thrown
    const error = toFailure(scope, path, thrown)
    closeUnder(scope, path, error)
    throw error
  }
}

/** Tells a failure, and closes everything that is open at or under a path because of it. */
export function closeUnder(scope: Scope, path: string, error: Error): void {
  const { state, now, emit } = scope
  if (!state.open.steps.has(path)) return
  tell(scope, path, error)
  for (const { step, part } of missingUsages(state, path)) emit(step, part)
  const closing = { root: path, now: now(), outcome: 'aborted', error: toErrorValue(error, 'step-failed') } as const
  for (const { step, part } of state.open.closing(closing)) emit(step, part)
}
