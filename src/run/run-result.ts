import type { Entry } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import type { Outcome } from '../part/part.ts'
import { noUsage, type Usage } from '../part/usage.ts'
import { toView } from './history.ts'

/** How a run ended, or that it is suspended. `text` is the answer, `output` the pipeline’s value. */
export interface RunResult {
  id: string
  outcome: Outcome | 'suspended'
  text: string
  output: unknown
  usage: Usage
  error?: ErrorValue
}

/** What a run that nobody owns any more has come to, by its log. Never rejects: that it cannot be read is a failure too. */
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
