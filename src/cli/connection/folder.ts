/** A connection to the database of a data folder that no live server uses. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { MillraceError } from '../../part/error.ts'
import { hasEnded, type RunRow, type Store } from '../../part/log.ts'
import { isHeld } from '../../server/data-lock.ts'
import { sqliteStore } from '../../store/sqlite/store.ts'
import { sharedStoreUrl, type Connection } from '../connection.ts'
import type { CommandContext } from '../context.ts'
import { checkData } from '../paths.ts'
import { outcomeOf, rowOf, storedRuns } from './stored-runs.ts'
import type { StoreUpkeep } from './store-upkeep.ts'

/** Polling interval for a followed log, in ms: another process that writes does not notify this one. */
const pollInterval = 200

/** Longest wait for the tables of a live server, in ms. */
const indexTimeout = 2000

/** Its methods throw `usage` if the folder has no database. Only an import creates it. */
export function folderConnection(context: CommandContext, data: string): Connection {
  let reader: Store | undefined
  let upkeep: StoreUpkeep | undefined
  let isIndexed = false
  const open = async () => (reader ??= sqliteStore(databaseIn(context, data), { readOnly: true }))
  const runs = storedRuns(open)

  /** Whether a process may be running it: a server that does not answer, or a command that started or answered it. */
  async function mayRun(store: Store, { id, protocol }: Pick<RunRow, 'id' | 'protocol'>): Promise<boolean> {
    if (isHeld(context.path(data), 'server')) return true
    if (!isHeld(context.path(data), 'anyone')) return false
    let by = protocol
    for await (const batch of store.log.read(id))
      for (const entry of batch) if (entry.type === 'resume') by = entry.protocol
    return by === 'cli'
  }

  return {
    ...runs,
    async list(query) {
      if (query.search !== undefined && !isIndexed) await (await openIndexed(context, data)).close()
      isIndexed ||= query.search !== undefined
      return runs.list(query)
    },
    async *read(run, after, follow) {
      const store = await open()
      let seq = after
      for (;;) {
        // The status is read before the entries: if the run has ended by now, all its entries are there.
        const found = await rowOf(store, run)
        const continues = follow && !hasEnded(found.status) && (await mayRun(store, found))
        for await (const batch of store.log.read(run, { after: seq })) {
          yield* batch
          seq = batch.at(-1)?.seq ?? seq
        }
        if (!continues) return
        await sleep(pollInterval)
      }
    },
    async orphanOutcome(run) {
      if (run.status !== 'running') return undefined
      const store = await open()
      return (await mayRun(store, run)) ? undefined : outcomeOf(store, run.id)
    },
    async stats(queryAt) {
      const { readStoreStats } = await import('./store-upkeep.ts')
      const store = await openIndexed(context, data)
      try {
        return await readStoreStats(store, queryAt)
      } finally {
        await store.close()
      }
    },
    async usage(queryAt) {
      const { readStoreUsage } = await import('./store-upkeep.ts')
      const store = await openIndexed(context, data)
      try {
        return await readStoreUsage(store, queryAt)
      } finally {
        await store.close()
      }
    },
    audit: async (query) => (await open()).audit!.list(query),
    async upkeep() {
      const { openFolderUpkeep } = await import('./store-upkeep.ts')
      return (upkeep ??= openFolderUpkeep(databaseIn(context, data), context.path(join(data, 'runs'))))
    },
    async importer() {
      if (data === 'none') throw new MillraceError('usage', 'Runs with --data none are not kept. Name a folder.')
      return (await import('./run-importer.ts')).folderImporter(context, data)
    },
    async close() {
      await upkeep?.close()
      await reader?.close()
    },
  }
}

/** The database of a data folder. Throws `usage` if there is none. */
export function databaseIn(context: CommandContext, data: string): string {
  checkData(context, data)
  const file = join(data, 'millrace.db')
  if (existsSync(context.path(file))) return context.path(file)
  const why =
    data === 'none'
      ? 'Runs with --data none are not kept.'
      : 'Start a run with millrace run or millrace serve, or name another data folder with --data.'
  throw new MillraceError('usage', `No runs found in ${data}. ${why}`)
}

/** Opens the store of a data folder when its tables are up to date: waits for a live server that fills them, or fills them. */
export async function openIndexed(context: CommandContext, data: string): Promise<Store> {
  const file = databaseIn(context, data)
  if (!isHeld(context.path(data), 'server')) {
    const store = writable(file)
    if (store !== undefined) {
      await store.records!.settle()
      return store
    }
  }
  const store = sqliteStore(file, { readOnly: true })
  for (const end = performance.now() + indexTimeout; await store.records!.isBehind(); await sleep(20)) {
    if (performance.now() < end) continue
    context.stderr.write('(the tables are behind the log: the newest entries are missing)\n')
    break
  }
  return store
}

/** Undefined if the file can only be read. */
function writable(file: string): Store | undefined {
  try {
    return sqliteStore(file, { migration: false })
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'store-failed') return undefined
    throw error
  }
}

/** Throws `usage` if the runs are in a shared store. `why`: the limit of that store. */
export async function refuseSharedStore(context: CommandContext, why: string, cure: string): Promise<void> {
  if ((await sharedStoreUrl(context, {})) === undefined) return
  const other = 'For those of a data folder, name it with --data.'
  throw new MillraceError(
    'usage',
    `The runs are in a shared store (MILLRACE_STORE or record.store), ${why}. ${cure} ${other}`,
  )
}
