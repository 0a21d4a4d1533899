/** A run that has an idempotency key or a position in its thread, but no entry yet. Perhaps its process has died. */
import { anySignal } from '../async/any-signal.ts'
import { pause } from '../async/pause.ts'
import type { Log, RunRow, Store } from '../part/log.ts'
import { awaitEntry } from './await-entry.ts'

/** ms to wait for the first entry of a run that another process has announced. */
const patience = 3000
/** How often the store is asked meanwhile, in ms. */
const askEvery = 300
/** After an answer that is so late, in ms, it waits anew: the store or this process was away, and the other process may have waited for the same store. */
const late = 1000

const overtaken = 'The run did not start in time, and its conversation continued.'

/**
 * The row of an announced run, as soon as it has its first entry. Undefined if none has come in time: then it will not start any
 * more, so that nothing is done twice and nothing overlaps. `signal`: this process shuts down, and waits no longer.
 */
export async function awaitStart(store: Store, run: string, signal: AbortSignal): Promise<RunRow | undefined> {
  const { log, runs } = store
  const row = await runs.get(run)
  if (row !== undefined || (await isGivenUp(log, run))) return row
  const begun = await awaitRow(store, run, signal)
  // It may start elsewhere while this process shuts down.
  if (begun !== undefined || signal.aborted) return begun
  await giveUp(log, run, overtaken)
  // It may have started at the last moment. Then it ends at once.
  return runs.get(run)
}

async function awaitRow({ log, runs }: Store, run: string, shutdown: AbortSignal): Promise<RunRow | undefined> {
  const over = new AbortController()
  const signal = anySignal([shutdown, over.signal])
  const entry = awaitEntry(log, run, () => true, { signal })
  const end = () => over.abort()
  entry.then(end, end)
  try {
    for (let since = performance.now(); !signal.aborted && performance.now() - since < patience;) {
      const began = performance.now()
      await pause(askEvery, signal)
      const row = await runs.get(run)
      if (row !== undefined) return row
      if (performance.now() - began > askEvery + late) since = performance.now()
    }
  } finally {
    end()
  }
  await entry
  return runs.get(run)
}

/** Keeps an announced run from starting: whoever starts it all the same finds the stop in its inbox, before its first step. */
export async function giveUp(log: Log, run: string, reason: string): Promise<void> {
  await log.post(run, 'stop', { reason })
}

async function isGivenUp(log: Log, run: string): Promise<boolean> {
  for await (const { key } of log.inbox(run)) if (key === 'stop') return true
  return false
}
