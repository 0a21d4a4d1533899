/**
 * Writes the last entries of a run: it closes everything that is open, then emits the one `run-end`. Without a `run-end` the
 * run would be recovered or ended again at each start. So if an entry cannot be made it is left out, and `run-end` still comes.
 */
import type { ErrorValue } from '../part/error.ts'
import type { Outcome, RunEnd } from '../part/part.ts'
import { noUsage } from '../part/usage.ts'
import type { Scope } from './scope.ts'
import type { RunState } from './state.ts'
import { missingUsages } from './unfinished.ts'

export interface Ending {
  outcome: Outcome
  error?: ErrorValue
  output?: unknown
  /** The outcome of open tool calls, and the reason. */
  closing: { outcome: 'aborted' | 'unavailable'; error: ErrorValue }
  now: number
}

export function emitEnd(state: RunState, emit: Scope['emit'], { outcome, error, output, closing, now }: Ending): void {
  const say = (step: string, part: Parameters<typeof emit>[1]) => attempt(() => emit(step, part))
  attempt(() => {
    for (const { step, part } of missingUsages(state)) say(step, part)
  })
  attempt(() => {
    for (const { step, part } of state.open.closing({ now, ...closing })) say(step, part)
  })
  const { usage, cost } = state
  const end: RunEnd = {
    type: 'run-end',
    outcome,
    usage: usage ?? noUsage,
    ...(cost === undefined || usage === undefined ? undefined : { cost }),
    ...(error === undefined ? undefined : { error }),
  }
  attempt(() => emit('', output === undefined ? end : { ...end, output }))
  if (state.end === undefined) emit('', { type: 'run-end', outcome, usage: noUsage, ...(error && { error }) })
}

export function attempt(task: () => void): void {
  try {
    task()
  } catch {
    // The `run-end` that follows has the error that matters.
  }
}
