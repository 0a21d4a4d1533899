import type { Entry } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import type { Outcome } from '../part/part.ts'
import { noUsage, type Usage } from '../part/usage.ts'
import { foldLog, readKept, readOutput } from '../fold/read-view.ts'
import { textOf } from '../fold/run-view.ts'
import type { Store } from '../part/log.ts'

/**
 * The outcome of a run that has ended or is suspended. `text` is the answer, `output` the pipeline’s value. `moved`: this runtime has
 * closed before that; the run goes on in another process, or when one is started. Its error has the code `run-moved`.
 */
export interface RunResult {
  id: string
  outcome: Outcome | 'suspended' | 'moved'
  text: string
  output: unknown
  usage: Usage
  error?: ErrorValue
}

const failed = { code: 'store-failed', message: 'The run could not be recorded.' }
const unread = { code: 'store-closed', message: 'The runtime is closed: open another one to read how the run ended.' }
const moved = {
  code: 'run-moved',
  message: 'This process has shut down. The run goes on in another one, or when one is started: read its result there.',
}

/**
 * Reads the outcome of a run that has no owner here. Never rejects: a run that cannot be read has failed. `stored`: its log, which the
 * holder can read even if the store has dropped the run. `isClosing`: nobody here will see what becomes of it.
 */
export async function readResult(
  store: Store,
  run: string,
  stored: AsyncIterable<Entry[]>,
  isClosing: boolean,
): Promise<RunResult> {
  const view = await read(store, run, stored).catch(() => undefined)
  if (view === undefined || view.status === 'running') {
    const { text = '', usage = noUsage } = view ?? {}
    const known = { id: run, text, output: undefined, usage }
    if (!isClosing) return { ...known, outcome: 'failed', error: failed }
    return view === undefined || !store.durable
      ? { ...known, outcome: 'failed', error: unread }
      : { ...known, outcome: 'moved', error: moved }
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
