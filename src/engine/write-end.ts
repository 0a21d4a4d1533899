/** Ends a run that has no owner: calls its callbacks, closes everything open and writes `run-end`. */
import type { Log } from '../part/log.ts'
import type { Outcome, RunEnd, SentMessage } from '../part/part.ts'
import { viewOf } from '../fold/read-view.ts'
import { createRedactor } from '../fold/redact.ts'
import { createInvoke, notifyAbort } from './callbacks.ts'
import { isMoved, createWriter } from './writer.ts'
import type { Registry } from './registry.ts'
import { countBeforeEnd, type OpenAccount, type RunAccount } from './run-account.ts'
import { createRunClock, type Clock } from './run-clock.ts'
import { type RunState, missingUsages } from './state.ts'
import { readStored } from './stored-pipeline.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { toErrorValue, type ErrorValue } from '../part/error.ts'
import { noUsage } from '../part/usage.ts'
import { emitError, type Scope } from './scope.ts'

export interface RunEnding {
  code: Outcome
  message: string
  /** The code of the error. Default: the outcome's. */
  errorCode?: string
  /** The outcome of open tool calls. */
  outcome: 'aborted' | 'unavailable'
  /** Messages that the run leaves behind. */
  messages?: readonly SentMessage[]
}

export interface EndContext {
  log: Log
  registry: Registry
  clock: Clock
  graceMs: number
  secrets: readonly string[]
  secretKeys: readonly string[]
  /** The quotas of whoever started the run. */
  openAccount?: OpenAccount | undefined
}

/**
 * `epoch`: that of the caller's claim. Resolves when the end is stored, or with `moved` if another owner has claimed the run since. Rejects if the
 * store fails.
 */
export async function writeEnd(
  { log, registry, clock, graceMs, secrets, secretKeys, openAccount }: EndContext,
  { run, epoch }: { run: string; epoch: number },
  state: RunState,
  { code, message, errorCode = code, outcome, messages = [] }: RunEnding,
): Promise<'ended' | 'moved'> {
  const now = createRunClock(clock, state.lastTimestamp)
  let account: RunAccount | undefined
  const writer = createWriter({
    log,
    run,
    epoch,
    lastSeq: state.lastSeq,
    redactor: createRedactor(secrets, secretKeys),
    now,
    view: () => viewOf(state),
    onEntry(entry) {
      state.apply(entry)
      if (entry.type === 'usage') account?.noted(entry)
    },
    onStored: (seq) => account?.stored(seq),
    // `stored` below rejects with it.
    onFailure: () => undefined,
  })
  // If the answer had ended, clients have seen it as complete, so only later steps were cut off.
  const answered = state.open.answered
  const error = { code: errorCode, message }
  const pipeline = code === 'aborted' && !state.isForeign ? readStored(state.start?.pipeline) : undefined
  if (pipeline !== undefined) {
    const telling = { error, graceMs }
    await notifyAbort({ state, invoke: createInvoke(registry, writer.emit) }, pipeline, telling)
  }
  const user = state.start?.user
  account = user && openAccount?.({ id: run, user, state, speaking: new Map() })
  if (account !== undefined) {
    await account.ready
    await countBeforeEnd(account, writer, state)
  }
  for (const each of messages) writer.emit('', each)
  emitEnd(state, writer.emit, {
    outcome: answered ? 'completed' : code,
    closing: { outcome, error },
    now: now(),
    ...(answered ? undefined : { error }),
  })
  try {
    await writer.stored()
  } catch (failure) {
    await account?.close(false)
    if (isMoved(failure)) return 'moved'
    throw failure
  }
  await account?.close(true)
  return 'ended'
}

/**
 * Writes the last entries of a run: closes all open items, then emits the one `run-end`. Without a `run-end` the run would be recovered or ended
 * again at each start. So an entry that cannot be made is left out, and `run-end` still follows.
 */
interface Ending {
  outcome: Outcome
  error?: ErrorValue
  output?: unknown
  /** The outcome of open tool calls, and the reason. */
  closing: { outcome: 'aborted' | 'unavailable'; error: ErrorValue }
  now: number
}

export function emitEnd(state: RunState, emit: Scope['emit'], { outcome, error, output, closing, now }: Ending): void {
  const emitIfPossible = (step: string, part: Parameters<typeof emit>[1]) => attempt(() => emit(step, part))
  attempt(() => {
    for (const { step, part } of missingUsages(state)) emitIfPossible(step, part)
  })
  attempt(() => {
    for (const { step, part } of state.open.closing({ now, ...closing })) emitIfPossible(step, part)
  })
  const { usage, cost } = state
  const end: RunEnd = {
    type: 'run-end',
    outcome,
    usage: usage ?? noUsage,
    ...(cost === undefined || usage === undefined ? undefined : { cost }),
    ...omitUndefined({ error }),
  }
  attempt(() => emit('', output === undefined ? end : { ...end, output }))
  if (state.end === undefined) emit('', { type: 'run-end', outcome, usage: noUsage, ...(error && { error }) })
}

function attempt(task: () => void): void {
  try {
    task()
  } catch {
    // The following `run-end` has the relevant error.
  }
}

/** Codes of errors that are an outcome of their own. */
export const endOutcomes: ReadonlySet<string> = new Set<Outcome>([
  'aborted',
  'budget-exceeded',
  'timed-out',
  'interrupted',
])

/** Ends a run by its owner: with the value of its pipeline, or with the error that stopped it. */
export function endRun(scope: Scope, error: unknown, output: unknown): void {
  const { state, now, emit } = scope
  let outcome: Outcome = 'completed'
  let value: ErrorValue | undefined
  // If the answer has ended, clients have seen it as complete: nothing later may contradict that.
  if (error !== undefined && !state.open.answered) {
    value = toErrorValue(error, 'run-failed')
    outcome = endOutcomes.has(value.code) ? (value.code as Outcome) : 'failed'
    if (outcome === 'failed') attempt(() => emitError(scope, '', error))
  }
  const why = value ?? { code: 'ended', message: 'The run has ended.' }
  const closing = { outcome: 'aborted', error: why } as const
  emitEnd(state, emit, { outcome, output, closing, now: now(), ...(value && { error: value }) })
}
