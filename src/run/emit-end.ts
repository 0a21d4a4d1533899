/**
 * The last entries of a run: what is open is closed, then comes the one `run-end`. A run without a `run-end` would be gone
 * on with, or ended, again and again, so no fault on the way keeps it from being written: what cannot be made is left out.
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
  /** What open tool calls come to, and why. */
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
    // The end that follows says more than this fault could.
  }
}
