import type { ErrorValue } from '../part/error.ts'
import type { RunIndex, RunRow } from '../part/log.ts'
import { pause } from '../part/pause.ts'
import type { RunEnding } from './write-end.ts'

export interface LostContext {
  runs: RunIndex
  losses: Map<string, ErrorValue>
  shutdown: AbortSignal
  end(run: string, ending: RunEnding): Promise<void>
}

/** The store refused the run's entries: its log is ended as soon as the store works again, else by the next start. */
export async function closeLost(
  { runs, losses, shutdown, end }: LostContext,
  { id: run, epoch }: Pick<RunRow, 'id' | 'epoch'>,
): Promise<void> {
  const message = 'The run could not be recorded any more.'
  for (let delay = 100; !shutdown.aborted; delay = Math.min(delay * 2, 5000)) {
    try {
      // Whoever took the run over goes on with it: then it is not ours to end.
      const isOurs = ((await runs.get(run))?.epoch ?? 0) <= epoch
      if (isOurs) await end(run, { code: 'failed', message, outcome: 'unavailable' })
      losses.delete(run)
      return
    } catch {
      await pause(delay, shutdown, { background: true })
    }
  }
}
