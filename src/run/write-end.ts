/** The end of a run that has no owner: everything open closed, callbacks told, one `run-end`. */
import type { Log, RunRow } from '../part/log.ts'
import type { Outcome } from '../part/part.ts'
import { noUsage } from '../part/usage.ts'
import { parsePipeline } from '../pipeline/parse.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { createInvoke, tellAbort } from './callbacks.ts'
import type { Registry } from './ports.ts'
import type { RunState } from './state.ts'
import { missingUsages } from './unfinished.ts'
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
  now(): number
  graceMs: number
}

/** Resolves when it is stored; throws when the store refused it. */
export async function writeEnd(
  { log, registry, now, graceMs }: EndContext,
  { id: run, epoch }: RunRow,
  state: RunState,
  { code, message, outcome }: RunEnding,
): Promise<void> {
  const writer = createWriter({
    log,
    run,
    epoch: epoch + 1,
    lastSeq: state.lastSeq,
    redactor: undefined,
    now,
    onEntry: (entry) => state.apply(entry),
    // `stored` below throws it.
    onFailure: () => undefined,
  })
  // After the answer's end a client has been told that all went well; what was cut off came after.
  const answered = state.open.answered
  const error = { code, message }
  if (code === 'aborted') {
    const telling = { error, aborted: true, graceMs }
    const pipeline = readPipeline(state.start!.pipeline)
    if (pipeline) await tellAbort({ state, invoke: createInvoke(registry, writer.emit) }, pipeline, telling)
  }
  for (const { step, part } of missingUsages(state)) writer.emit(step, part)
  for (const { step, part } of state.open.closing({ now: now(), outcome, error })) writer.emit(step, part)
  const { usage, cost } = state
  writer.emit('', {
    type: 'run-end',
    outcome: answered ? 'completed' : code,
    usage: usage ?? noUsage,
    ...(cost === undefined || usage === undefined ? undefined : { cost }),
    ...(answered ? undefined : { error }),
  })
  await writer.stored()
}

/** A run can be ended whatever its text has become since it was recorded: only its callbacks are then unknown. */
function readPipeline(text: string): Pipeline | undefined {
  try {
    return parsePipeline(text)
  } catch {
    return undefined
  }
}
