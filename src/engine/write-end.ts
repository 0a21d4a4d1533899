/** Ends a run that has no owner: calls its callbacks, closes everything open and writes `run-end`. */
import type { Log } from '../part/log.ts'
import type { Outcome } from '../part/part.ts'
import { viewOf } from '../fold/read-view.ts'
import { createRedactor } from '../fold/redact.ts'
import { createInvoke, notifyAbort } from './callbacks.ts'
import { emitEnd } from './emit-end.ts'
import { isMoved } from './moved.ts'
import type { Registry } from './registry.ts'
import { createRunClock, type Clock } from './run-clock.ts'
import type { RunState } from './state.ts'
import { readStored } from './stored-pipeline.ts'
import { createWriter } from './writer.ts'

export interface RunEnding {
  code: Outcome
  message: string
  /** The code of the error. Default: the outcome's. */
  errorCode?: string
  /** The outcome of open tool calls. */
  outcome: 'aborted' | 'unavailable'
}

export interface EndContext {
  log: Log
  registry: Registry
  clock: Clock
  graceMs: number
  secrets: readonly string[]
  secretKeys: readonly string[]
}

/**
 * `epoch`: that of the caller's claim. Resolves when the end is stored, or with `moved` when another owner has claimed the run
 * since. Rejects if the store fails.
 */
export async function writeEnd(
  { log, registry, clock, graceMs, secrets, secretKeys }: EndContext,
  { run, epoch }: { run: string; epoch: number },
  state: RunState,
  { code, message, errorCode = code, outcome }: RunEnding,
): Promise<'ended' | 'moved'> {
  const now = createRunClock(clock, state.lastTimestamp)
  const writer = createWriter({
    log,
    run,
    epoch,
    lastSeq: state.lastSeq,
    redactor: createRedactor(secrets, secretKeys),
    now,
    view: () => viewOf(state),
    onEntry: (entry) => state.apply(entry),
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
  emitEnd(state, writer.emit, {
    outcome: answered ? 'completed' : code,
    closing: { outcome, error },
    now: now(),
    ...(answered ? undefined : { error }),
  })
  try {
    await writer.stored()
  } catch (failure) {
    if (isMoved(failure)) return 'moved'
    throw failure
  }
  return 'ended'
}
