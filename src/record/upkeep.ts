/**
 * Compacts, archives and deletes runs by age and size. A run at which that fails holds up no other. Without `aside` the first failure is
 * thrown when all others are done.
 */
import { MillraceError } from '../part/error.ts'
import type { Compacted, Paced, Upkeep } from '../part/upkeep.ts'
import { createSetAside, createWorker, type SetAside } from './set-aside.ts'

/** `tell` gets the number of runs done so far. */
interface PassOptions extends Paced {
  dryRun?: boolean
  tell?: (runs: number) => void
  /** Remembers from call to call at which runs it failed. */
  aside?: SetAside
}

/** The result of {@link compactRuns}, over all runs. */
export interface CompactedRuns extends Compacted {
  runs: number
}

/** The result of {@link pruneRuns}. */
export interface PrunedRuns {
  runs: number
  /** About how many bytes they took. */
  bytes: number
}

/** Merges the deltas of runs that ended before a moment. `runs`: those in which something was merged. */
export async function compactRuns(
  upkeep: Upkeep,
  { endedBefore, dryRun = false, tell, aside, ...paced }: PassOptions & { endedBefore: number },
): Promise<CompactedRuns> {
  const total: CompactedRuns = { runs: 0, entriesBefore: 0, entriesAfter: 0, bytesBefore: 0, bytesAfter: 0 }
  const left = aside ?? createSetAside()
  const worker = createWorker('compacted', left, paced)
  /** Runs that are listed again: those that stay as they are. */
  const tried = new Set<string>()
  for (;;) {
    const found = await upkeep.uncompacted(endedBefore, tried.size + left.size + 100)
    const due = left.due('compacted', found).filter((run) => !tried.has(run))
    if (due.length === 0) break
    for (const run of due) {
      tried.add(run)
      const done = await worker.attempt(run, () => upkeep.compact(run, { dryRun, ...worker.paced }))
      // Another process is at it.
      if (done === undefined) continue
      if (!dryRun) tried.delete(run)
      if (done.entriesAfter === done.entriesBefore) continue
      total.runs++
      total.entriesBefore += done.entriesBefore
      total.entriesAfter += done.entriesAfter
      total.bytesBefore += done.bytesBefore
      total.bytesAfter += done.bytesAfter
      tell?.(total.runs)
    }
  }
  if (aside === undefined) throwFirst(left)
  return total
}

/** Moves runs that ended before a moment to the archive, if there is one. Resolves with how many. */
export async function archiveRuns(
  upkeep: Upkeep,
  { endedBefore, tell, aside, ...paced }: Omit<PassOptions, 'dryRun'> & { endedBefore: number },
): Promise<number> {
  const { unarchived, archive } = upkeep
  if (unarchived === undefined || archive === undefined) return 0
  const left = aside ?? createSetAside()
  const worker = createWorker('archived', left, paced)
  let archived = 0
  for (const tried = new Set<string>(); ;) {
    const found = await unarchived(endedBefore, tried.size + left.size + 100)
    const due = left.due('archived', found).filter((run) => !tried.has(run))
    if (due.length === 0) break
    for (const run of due) {
      // Those that another process is at are left to it.
      tried.add(run)
      if ((await worker.attempt(run, () => archive(run))) === true) {
        tried.delete(run)
        archived++
      }
      tell?.(archived)
      await worker.paced.rest?.()
    }
  }
  if (aside === undefined) throwFirst(left)
  return archived
}

/** Erases every byte of deleted runs, however long it takes. Throws `not-erased` while another process reads or writes the store. */
export async function eraseAll(upkeep: Upkeep, paced: Paced): Promise<void> {
  if ((await upkeep.erase?.({ ...paced, rewrites: true })) !== 'read') return
  throw new MillraceError(
    'not-erased',
    'What was deleted is still in the database, because another process reads or writes it. Try again when that has ended.',
    { status: 409 },
  )
}

function throwFirst(aside: SetAside): void {
  const [first] = aside.failures()
  if (first !== undefined) throw first.error
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
    aside,
    ...paced
  }: PassOptions & { idleBefore?: number | undefined; maxBytes?: number | undefined },
): Promise<PrunedRuns> {
  const left = aside ?? createSetAside()
  const worker = createWorker('deleted', left, paced)
  const gone = new Set<string>()
  let bytes = 0

  /** Deletes the offered runs, oldest first, as long as `isWanted` resolves with true. A run is offered once its forks are gone. */
  async function drop(before: number, isWanted: () => Promise<boolean>): Promise<void> {
    for (let after: number | undefined = 0; after !== undefined;) {
      const { runs, next } = await upkeep.expired(before, after)
      const due = new Set(
        left.due(
          'deleted',
          runs.map(({ id }) => id),
        ),
      )
      for (const run of runs) {
        if (gone.has(run.id) || !due.has(run.id)) continue
        if (!(await isWanted())) return
        if (!dryRun && (await worker.attempt(run.id, () => upkeep.drop(run.id, worker.paced))) !== true) continue
        gone.add(run.id)
        bytes += run.bytes
        tell?.(gone.size)
      }
      after = next
      await worker.paced.rest?.()
    }
  }

  if (idleBefore !== undefined) await drop(idleBefore, async () => true)
  if (maxBytes !== undefined) {
    const isOver = async () => (await upkeep.size()).used - (dryRun ? bytes : 0) > maxBytes
    if (await isOver()) await drop(Infinity, isOver)
  }
  if (gone.size > 0 && !dryRun) await upkeep.erase?.(worker.paced)
  if (aside === undefined) throwFirst(left)
  return { runs: gone.size, bytes }
}
