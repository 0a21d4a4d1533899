import type { Entry } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import type { Outcome } from '../part/part.ts'
import { noUsage, type Usage } from '../part/usage.ts'
import { toView } from './history.ts'

/** The outcome of a run that has ended or is suspended. `text` is the answer, `output` the pipeline’s value. */
export interface RunResult {
  id: string
  outcome: Outcome | 'suspended'
  text: string
  output: unknown
  usage: Usage
  error?: ErrorValue
}

/** Reads the outcome of a run that has no owner from its log. Never rejects: a log that cannot be read is a failed run. */
export async function readResult(run: string, batches: AsyncIterable<Entry[]>): Promise<RunResult> {
  const view = await toView(batches).catch(() => undefined)
  if (view === undefined || view.status === 'running') {
    const error = { code: 'store-failed', message: 'The run could not be recorded.' }
    const { text = '', usage = noUsage } = view ?? {}
    return { id: run, outcome: 'failed', text, output: undefined, usage, error }
  }
  const { status, text, output, usage, error } = view
  return { id: run, outcome: status, text, output, usage, ...(error === undefined ? undefined : { error }) }
}
