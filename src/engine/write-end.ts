/** Ends a run that has no owner: calls its callbacks, closes everything open and writes `run-end`. */
import type { Log, RunIndex, RunRow } from '../part/log.ts'
import type { Outcome } from '../part/part.ts'
import { keepView } from '../fold/read-view.ts'
import { createRedactor } from '../fold/redact.ts'
import { createInvoke, tellAbort } from './callbacks.ts'
import { emitEnd } from './emit-end.ts'
import type { Registry } from './registry.ts'
import { createRunClock, type Clock } from './run-clock.ts'
import type { RunState } from './state.ts'
import { readStored } from './stored-pipeline.ts'
import { createWriter } from './writer.ts'

export interface RunEnding {
  code: Outcome
  message: string
  /** The outcome of open tool calls. */
  outcome: 'aborted' | 'unavailable'
}

export interface EndContext {
  log: Log
  runs: RunIndex
  registry: Registry
  clock: Clock
  graceMs: number
  secrets: readonly string[]
}

/** `epoch`: the caller's, who owns the run. Resolves when the end is stored. Rejects if the store fails. */
export async function writeEnd(
  { log, runs, registry, clock, graceMs, secrets }: EndContext,
  { id: run, epoch }: Pick<RunRow, 'id' | 'epoch'>,
  state: RunState,
  { code, message, outcome }: RunEnding,
): Promise<void> {
  const now = createRunClock(clock, state.lastTimestamp)
  const writer = createWriter({
    log,
    run,
    epoch,
    lastSeq: state.lastSeq,
    redactor: createRedactor(secrets),
    now,
    onEntry: (entry) => state.apply(entry),
    // `stored` below rejects with it.
    onFailure: () => undefined,
  })
  // If the answer had ended, clients have seen it as complete, so only later steps were cut off.
  const answered = state.open.answered
  const error = { code, message }
  const pipeline = code === 'aborted' ? readStored(state.start?.pipeline) : undefined
  if (pipeline !== undefined) {
    const telling = { error, graceMs }
    await tellAbort({ state, invoke: createInvoke(registry, writer.emit) }, pipeline, telling)
  }
  emitEnd(state, writer.emit, {
    outcome: answered ? 'completed' : code,
    closing: { outcome, error },
    now: now(),
    ...(answered ? undefined : { error }),
  })
  await writer.stored()
  await keepView(runs, run, state)
}
