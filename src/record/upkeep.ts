/** Compacts and deletes runs by age and size. */
import type { Compacted, Paced, Upkeep } from '../part/upkeep.ts'

/** `tell` gets the number of runs done so far. */
interface Work extends Paced {
  dryRun?: boolean
  tell?: (runs: number) => void
}

/** What {@link compactRuns} merged, over all runs. */
export interface CompactedRuns extends Compacted {
  runs: number
}

/** What {@link pruneRuns} deleted. */
export interface PrunedRuns {
  runs: number
  /** About how many bytes they took. */
  bytes: number
}

/** Merges the deltas of runs that ended before a moment. `runs`: those in which something was merged. */
export async function compactRuns(
  upkeep: Upkeep,
  { endedBefore, dryRun = false, tell, rest }: Work & { endedBefore: number },
): Promise<CompactedRuns> {
  const total: CompactedRuns = { runs: 0, entriesBefore: 0, entriesAfter: 0, bytesBefore: 0, bytesAfter: 0 }
  const tried = new Set<string>()
  for (;;) {
    // Those that are done are not listed again, except in a dry run.
    const found = await upkeep.uncompacted(endedBefore, tried.size + 100)
    const due = found.filter((run) => !tried.has(run))
    if (due.length === 0) return total
    for (const run of due) {
      tried.add(run)
      const done = await upkeep.compact(run, { dryRun, ...(rest && { rest }) })
      if (done === undefined || done.entriesAfter === done.entriesBefore) continue
      total.runs++
      total.entriesBefore += done.entriesBefore
      total.entriesAfter += done.entriesAfter
      total.bytesBefore += done.bytesBefore
      total.bytesAfter += done.bytesAfter
      tell?.(total.runs)
    }
    if (!dryRun) tried.clear()
  }
}

/** Moves runs that ended before a moment to the archive, if there is one. Resolves with how many. */
export async function archiveRuns(
  upkeep: Upkeep,
  { endedBefore, tell, rest }: Omit<Work, 'dryRun'> & { endedBefore: number },
): Promise<number> {
  const { unarchived, archive } = upkeep
  if (unarchived === undefined || archive === undefined) return 0
  let moved = 0
  for (const tried = new Set<string>(); ;) {
    const due = (await unarchived(endedBefore, tried.size + 100)).filter((run) => !tried.has(run))
    if (due.length === 0) return moved
    for (const run of due) {
      // Those that another process is at are left to it.
      tried.add(run)
      if (await archive(run)) moved++
      tell?.(moved)
      await rest?.()
    }
  }
}

/**
 * Deletes runs whose conversation was last used before `idleBefore` (epoch ms); then the oldest ones, until no more than `maxBytes` are
 * used.
 */
export async function pruneRuns(
  upkeep: Upkeep,
  {
    idleBefore,
    maxBytes,
    dryRun = false,
    tell,
    rest,
  }: Work & { idleBefore?: number | undefined; maxBytes?: number | undefined },
): Promise<PrunedRuns> {
  const gone = new Set<string>()
  let bytes = 0

  /** Deletes what is offered, oldest first, while it is wanted. A run is offered once what stands in its way is gone: its forks. */
  async function drop(before: number, isWanted: () => Promise<boolean>): Promise<void> {
    for (let after: number | undefined = 0; after !== undefined;) {
      const { runs, next } = await upkeep.expired(before, after)
      for (const run of runs) {
        if (gone.has(run.id)) continue
        if (!(await isWanted())) return
        if (!dryRun && !(await upkeep.drop(run.id, rest && { rest }))) continue
        gone.add(run.id)
        bytes += run.bytes
        tell?.(gone.size)
      }
      after = next
      await rest?.()
    }
  }

  if (idleBefore !== undefined) await drop(idleBefore, async () => true)
  if (maxBytes !== undefined) {
    const isOver = async () => (await upkeep.size()).used - (dryRun ? bytes : 0) > maxBytes
    if (await isOver()) await drop(Infinity, isOver)
  }
  return { runs: gone.size, bytes }
}
