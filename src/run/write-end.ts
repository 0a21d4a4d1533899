/** The end of a run that has no owner: everything open closed, callbacks told, one `run-end`. */
import type { Log, RunRow } from '../part/log.ts'
import type { Outcome } from '../part/part.ts'
import { createRedactor } from '../part/redact.ts'
import { createInvoke, tellAbort } from './callbacks.ts'
import { emitEnd } from './emit-end.ts'
import type { Registry } from './ports.ts'
import { createRunClock, type Clock } from './run-clock.ts'
import type { RunState } from './state.ts'
import { readStored } from './stored-pipeline.ts'
import { createWriter } from './writer.ts'

export interface RunEnding {
  code: Outcome
  message: string
  /** What open tool calls come to. */
  outcome: 'aborted' | 'unavailable'
}

export interface EndContext {
  log: Log
  registry: Registry
  clock: Clock
  graceMs: number
  secrets: readonly string[]
}

/** Resolves when it is stored; throws when the store refused it. */
export async function writeEnd(
  { log, registry, clock, graceMs, secrets }: EndContext,
  { id: run, epoch }: RunRow,
  state: RunState,
  { code, message, outcome }: RunEnding,
): Promise<void> {
  const now = createRunClock(clock, state.lastTimestamp)
  const writer = createWriter({
    log,
    run,
    epoch: epoch + 1,
    lastSeq: state.lastSeq,
    redactor: createRedactor(secrets),
    now,
    onEntry: (entry) => state.apply(entry),
    // `stored` below throws it.
    onFailure: () => undefined,
  })
  // After the answer's end a client has been told that all went well; what was cut off came after.
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
}
