/** Deletes, compacts and counts runs in a store, of a data folder or shared. */
import { setImmediate as turn } from 'node:timers/promises'
import { MillraceError } from '../../part/error.ts'
import type { Store } from '../../part/log.ts'
import { timeOf } from '../../part/log.ts'
import type { Upkeep } from '../../part/upkeep.ts'
import { deleteRun, deleteThread } from '../../record/delete.ts'
import { withRunFiles } from '../../record/run-files.ts'
import { readUsageReport } from '../../record/usage-report.ts'
import type { UsageReport, UsageReportQuery } from '../../part/usage-report.ts'
import { readStats, type Stats, type StatsQuery } from '../../record/stats.ts'
import { compactRuns, eraseAll, pruneRuns } from '../../record/upkeep.ts'
import { sqliteStore } from '../../store/sqlite/store.ts'
import type { RunUpkeep, UpkeepResult } from '../connection.ts'

export interface StoreUpkeep extends RunUpkeep {
  close(): Promise<void>
}

/** `runFiles`: the folder of the files of its runs. */
export function openFolderUpkeep(file: string, runFiles: string): StoreUpkeep {
  const store = sqliteStore(file, { migration: false })
  return storeUpkeep({ ...store, upkeep: withRunFiles(store.upkeep!, runFiles) })
}

/** Throws `usage`, and closes the store, if its runs cannot be changed by hand. */
export async function openSharedUpkeep(store: Store): Promise<StoreUpkeep> {
  const { upkeep } = store
  if (upkeep !== undefined) return storeUpkeep({ ...store, upkeep })
  await store.close()
  const cure = 'Its servers do that by themselves: see record.retention.'
  throw new MillraceError('usage', `Runs in a shared store cannot be compacted or deleted by hand. ${cure}`)
}

function storeUpkeep(store: Store & { upkeep: Upkeep }): StoreUpkeep {
  const { upkeep } = store
  const paced = { rest: turn }

  async function work<T>(
    { dryRun, erase = false }: { dryRun: boolean; erase?: boolean },
    task: (now: number) => Promise<T>,
  ): Promise<UpkeepResult<T>> {
    await store.records?.settle()
    const done = await task(timeOf(store))
    if (!dryRun) await upkeep.vacuum(paced)
    if (!dryRun && erase) await eraseAll(upkeep, paced)
    const { used: size } = await upkeep.size()
    return { ...done, dryRun, size }
  }

  return {
    compact: ({ olderThan, dryRun }, onProgress) =>
      work({ dryRun }, (now) =>
        compactRuns(upkeep, { endedBefore: now - olderThan, dryRun, tell: onProgress, ...paced }),
      ),
    prune: ({ olderThan, maxBytes, erase, dryRun }, onProgress) =>
      work({ dryRun, erase }, async (now) => {
        const idleBefore = olderThan === undefined ? undefined : now - olderThan
        if (idleBefore !== undefined && !dryRun) await store.audit?.prune(idleBefore)
        return pruneRuns(upkeep, { idleBefore, maxBytes, dryRun, tell: onProgress, ...paced })
      }),
    deleteRun: (id) => deleteRun(store, id, paced),
    deleteThread: (id) => deleteThread(store, id, paced),
    close: () => store.close(),
  }
}

export function readStoreUsage(store: Store, queryAt: (now: number) => UsageReportQuery): Promise<UsageReport> {
  return readUsageReport(store, queryAt(timeOf(store)))
}

export function readStoreStats(store: Store, queryAt: (now: number) => StatsQuery): Promise<Stats> {
  return readStats(store, queryAt(timeOf(store)))
}
