import type { Entry } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import type { Outcome } from '../part/part.ts'
import { noUsage, type Usage } from '../part/usage.ts'
import { foldLog, readKept, readOutput } from '../fold/read-view.ts'
import { textOf } from '../fold/run-view.ts'
import type { Store } from '../part/log.ts'

/** The outcome of a run that has ended or is suspended. `text` is the answer, `output` the pipeline’s value. */
export interface RunResult {
  id: string
  outcome: Outcome | 'suspended'
  text: string
  output: unknown
  usage: Usage
  error?: ErrorValue
}

/**
 * Reads the outcome of a run that has no owner. Never rejects: a run that cannot be read has failed. `stored`: its log, which the
 * holder can read even if the store has dropped the run.
 */
export async function readResult(store: Store, run: string, stored: AsyncIterable<Entry[]>): Promise<RunResult> {
  const view = await read(store, run, stored).catch(() => undefined)
  if (view === undefined || view.status === 'running') {
    const error = { code: 'store-failed', message: 'The run could not be recorded.' }
    const { text = '', usage = noUsage } = view ?? {}
    return { id: run, outcome: 'failed', text, output: undefined, usage, error }
  }
  const { status, text, output, usage, error } = view
  return { id: run, outcome: status, text, output, usage, ...(error === undefined ? undefined : { error }) }
}

async function read(store: Store, run: string, stored: AsyncIterable<Entry[]>) {
  const kept = await readKept(store, run)
  if (kept === undefined) return (await foldLog(stored))?.view()
  const output = await readOutput(store.log, run, kept)
  return { ...kept, text: kept.messages.map(textOf).join(''), output }
}
