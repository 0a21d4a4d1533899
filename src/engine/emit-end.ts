/**
 * Writes the last entries of a run: it closes everything that is open, then emits the one `run-end`. Without a `run-end` the
 * run would be recovered or ended again at each start. So if an entry cannot be made it is left out, and `run-end` still comes.
 */
import { compact } from '../part/compact.ts'
import { toErrorValue, type ErrorValue } from '../part/error.ts'
import type { Outcome, RunEnd } from '../part/part.ts'
import { noUsage } from '../part/usage.ts'
import { emitError, type Scope } from './scope.ts'
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
    ...compact({ error }),
  }
  attempt(() => emit('', output === undefined ? end : { ...end, output }))
  if (state.end === undefined) emit('', { type: 'run-end', outcome, usage: noUsage, ...(error && { error }) })
}

function attempt(task: () => void): void {
  try {
    task()
  } catch {
    // The `run-end` that follows has the error that matters.
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
