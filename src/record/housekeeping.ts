/**
 * Keeps a store small in the background: in slices of a few ms, for at most a tenth of the time. Every hour; a shared store, which is in
 * memory, merges and archives every minute.
 */
import { pause } from '../async/pause.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { MillraceError, wholeMessage } from '../part/error.ts'
import { type Store, timeOf } from '../part/log.ts'
import type { Paced, Upkeep } from '../part/upkeep.ts'
import type { Hold } from './hold-retention.ts'
import type { Policy } from './policy.ts'
import { createSetAside, type FailedTask, type SetAside } from './set-aside.ts'
import { archiveRuns, compactRuns, pruneRuns, type CompactedRuns, type PrunedRuns } from './upkeep.ts'

const minute = 60_000
const hour = 3_600_000
/** Unused space that is left for new runs, as a share of the used space. */
const spare = 0.1

/** The result of {@link keepSmall}; `compacted` is absent if the policy merges nothing. */
export interface HousekeepingResult {
  compacted: CompactedRuns | undefined
  pruned: PrunedRuns
  /** How many runs went to the archive. */
  archived: number
}

/** Applies the policy once. A failing run holds up no other: the first failure is thrown when the others are done. */
export async function keepSmall(
  store: Pick<Store, 'upkeep' | 'records' | 'audit' | 'now'>,
  policy: Policy,
  options: Paced & { now?: number } = {},
): Promise<HousekeepingResult | undefined> {
  const aside = createSetAside()
  const result = await keepSmallBut(aside, store, policy, options)
  const [failure] = aside.failures()
  if (failure !== undefined) throw failure.error
  return result
}

/** The same without the runs that were set aside. */
async function keepSmallBut(
  aside: SetAside,
  store: Pick<Store, 'upkeep' | 'records' | 'audit' | 'now'>,
  { compactAfter, archiveAfter, maxAge, maxBytes }: Policy,
  { now = timeOf(store), rest }: Paced & { now?: number },
): Promise<HousekeepingResult | undefined> {
  const { upkeep, records } = store
  if (upkeep === undefined) return undefined
  const paced = { aside, ...(rest && { rest }) }
  // Data derived from the log needs whole runs.
  await records?.settle()
  const pruned = await pruneRuns(upkeep, {
    idleBefore: maxAge === undefined ? undefined : now - maxAge,
    maxBytes,
    ...paced,
  })
  if (maxAge !== undefined) await store.audit?.prune(now - maxAge)
  const isDue = compactAfter !== undefined
  const compacted = isDue ? await compactRuns(upkeep, { endedBefore: now - compactAfter, ...paced }) : undefined
  const isOver = archiveAfter !== undefined
  const archived = isOver ? await archiveRuns(upkeep, { endedBefore: now - archiveAfter, ...paced }) : 0
  await vacuumIfDue(upkeep, rest && { rest })
  // Also the remains of earlier deletions after a crash, or while somebody read the file.
  await upkeep.erase?.(rest && { rest })
  return { compacted, pruned, archived }
}

async function vacuumIfDue(upkeep: Upkeep, paced: Paced | undefined): Promise<void> {
  const { used, free } = await upkeep.size()
  if (free > Math.max(used * spare, 8 * 1024 * 1024)) await upkeep.vacuum(paced)
}

function lineOf(failures: readonly FailedTask[]): string {
  const [{ run, task, error }, ...others] = failures as [FailedTask, ...FailedTask[]]
  const more = others.length === 0 ? '' : `, nor ${others.length} other${others.length === 1 ? '' : 's'}`
  return `run ${run} could not be ${task}${more}: ${wholeMessage(error).replace(/\.$/u, '')}. What fails stays as it is, and is tried again later.`
}

/** Rests so long that the work takes the share of the time. Rejects when the signal aborts. */
export function createRest(share: number, signal?: AbortSignal): () => Promise<void> {
  let since = performance.now()
  return async () => {
    const worked = performance.now() - since
    await pause(Math.ceil(worked * (1 / share - 1)), signal, { background: true })
    signal?.throwIfAborted()
    since = performance.now()
  }
}

export interface Housekeeping {
  /** Stops at the next slice. */
  close(): Promise<void>
}

/** `log` gets a line about deletions, and about a failure. `hold` decides when old runs may be deleted. */
export function startHousekeeping(
  store: Store,
  policy: Policy,
  log: (line: string) => void,
  hold?: Hold,
): Housekeeping {
  const closing = new AbortController()
  const { signal } = closing

  const { compactAfter, archiveAfter } = policy
  const every = store.fleet.shared
    ? Math.max(100, Math.min(minute, compactAfter ?? minute, archiveAfter ?? minute))
    : hour
  /** The last reported failure: it is reported again after an hour, or when it has changed. */
  let lastReport = { what: '', until: 0 }
  const aside = createSetAside()

  async function go(): Promise<void> {
    let pruneAt = 0
    for (let delay = Math.min(minute, every); ; delay = every) {
      await pause(delay, signal, { background: true })
      if (signal.aborted) return
      const isHourly = performance.now() >= pruneAt
      if (isHourly) pruneAt = performance.now() + hour
      try {
        const rest = createRest(0.1, signal)
        const deletes = isHourly && (hold === undefined || (await hold.allows({ rest })))
        const now = deletes ? policy : omitUndefined({ compactAfter, archiveAfter })
        aside.begin()
        const done = await keepSmallBut(aside, store, now, { rest })
        const failures = aside.failures()
        if (failures.length > 0) log(lineOf(failures))
        if (done !== undefined && done.pruned.runs > 0)
          log(`deleted ${done.pruned.runs} old runs: see record.retention`)
        if (isHourly && store.fleet.shared) await store.upkeep?.vacuum()
        lastReport = { what: '', until: 0 }
      } catch (error) {
        const isClosed = error instanceof MillraceError && error.code === 'store-closed'
        if (signal.aborted || isClosed) return
        const line = `old runs could not be compacted, archived or deleted: ${wholeMessage(error)}`
        // The same of another run is not told again.
        const what = line.replaceAll(/'[^']*'|\brun \S+/gu, '')
        if (what === lastReport.what && performance.now() < lastReport.until) continue
        lastReport = { what, until: performance.now() + hour }
        log(line)
      }
    }
  }

  const going = go()
  return {
    async close() {
      closing.abort()
      await going
    },
  }
}
