/** A run that has an idempotency key or a position in its thread, but no entry yet. Perhaps its process has died. */
import type { Log, RunRow, Store } from '../part/log.ts'
import { awaitEntry } from './await-entry.ts'

/** ms to wait for the first entry of a run that another process has announced. */
const patience = 3000

const overtaken = 'The run did not start in time, and its conversation continued.'

/**
 * The row of an announced run, as soon as it has its first entry. Undefined if none has come in time: then it will not start any
 * more, so that nothing is done twice and nothing overlaps.
 */
export async function awaitStart({ log, runs }: Store, run: string, signal: AbortSignal): Promise<RunRow | undefined> {
  const row = await runs.get(run)
  if (row !== undefined || (await isGivenUp(log, run))) return row
  await awaitEntry(log, run, () => true, { ms: patience, signal })
  const begun = await runs.get(run)
  if (begun !== undefined) return begun
  await giveUp(log, run, overtaken)
  // It may have started at the last moment. Then it ends at once.
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
