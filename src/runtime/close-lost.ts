import type { ErrorValue } from '../part/error.ts'
import type { RunIndex, RunRow } from '../part/log.ts'
import { pause } from '../async/pause.ts'
import type { RunEnding } from '../engine/write-end.ts'

export interface LostContext {
  runs: RunIndex
  losses: Map<string, ErrorValue>
  shutdown: AbortSignal
  end(run: string, ending: RunEnding, owned: number): Promise<void>
}

/** Ends the log of a run whose store failed, as soon as the store works again. Otherwise the next start does it. */
export async function closeLost(
  { runs, losses, shutdown, end }: LostContext,
  { id: run, epoch }: Pick<RunRow, 'id' | 'epoch'>,
): Promise<void> {
  const message = 'The store failed while the run was being recorded.'
  for (let delay = 100; !shutdown.aborted; delay = Math.min(delay * 2, 5000)) {
    try {
      // With a greater epoch another owner has taken over the run.
      const isOurs = ((await runs.get(run))?.epoch ?? 0) <= epoch
      if (isOurs) await end(run, { code: 'failed', message, outcome: 'unavailable' }, epoch)
      losses.delete(run)
      return
    } catch {
      await pause(delay, shutdown, { background: true })
    }
  }
}
