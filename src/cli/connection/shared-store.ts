/** A connection to a store that servers share. A stop is written to it, and the server that executes the run obeys. */
import type { Store } from '../../part/log.ts'
import type { Connection } from '../connection.ts'
import type { CommandContext } from '../context.ts'
import { outcomeOf, rowOf, storedRuns } from './stored-runs.ts'
import type { StoreUpkeep } from './store-upkeep.ts'

export function sharedStoreConnection(context: CommandContext, url: string): Connection {
  let opened: Promise<Store> | undefined
  let served: Promise<boolean> | undefined
  let upkeep: StoreUpkeep | undefined
  const open = () => (opened ??= openShared(context, url, { joins: false }))
  const hasServer = () => (served ??= open().then(isServed))
  return {
    ...storedRuns(open),
    async *read(run, after, follow) {
      const store = await open()
      await rowOf(store, run)
      const leave = new AbortController()
      const live = follow && (await hasServer()) ? { signal: leave.signal } : undefined
      try {
        for await (const batch of store.log.read(run, { after, ...live })) yield* batch
      } finally {
        leave.abort()
      }
    },
    async orphanOutcome({ id, status }) {
      return status !== 'running' || (await hasServer()) ? undefined : outcomeOf(await open(), id)
    },
    async tell(run, message) {
      const poster = (await import('./in-process.ts')).createPoster(context, await open())
      return poster.tell(run, { ...message, protocol: 'cli' })
    },
    async stop(run) {
      await (await import('./in-process.ts')).createPoster(context, await open()).stop(run, 'Stopped by request.')
      if (!(await hasServer())) context.stderr.write('no server shares the store now: the next one ends the run\n')
    },
    async stats(queryAt) {
      const { readStoreStats } = await import('./store-upkeep.ts')
      return readStoreStats(await open(), queryAt)
    },
    async usage(queryAt) {
      const { readStoreUsage } = await import('./store-upkeep.ts')
      return readStoreUsage(await open(), queryAt)
    },
    audit: async (query) => (await open()).audit!.list(query),
    async upkeep() {
      const { openSharedUpkeep } = await import('./store-upkeep.ts')
      return (upkeep ??= await openSharedUpkeep(await openShared(context, url)))
    },
    importer: async () => (await import('./run-importer.ts')).sharedStoreImporter(context, url),
    async close() {
      await upkeep?.close()
      const store = await opened?.catch(() => undefined)
      await store?.close()
    },
  }
}

/** `joins`: its servers see this process. Not needed to read, or to post to runs. */
export async function openShared(context: CommandContext, url: string, { joins = true } = {}): Promise<Store> {
  // Loaded on demand: most commands read a data folder.
  const { archiveOf, openStore } = await import('../../project/open-store.ts')
  return openStore({ store: url, data: 'none', joins, archive: archiveOf({}, context.env) })
}

/** Whether a server shares the store of a URL. */
export async function isServedBy(context: CommandContext, url: string): Promise<boolean> {
  const store = await openShared(context, url, { joins: false })
  try {
    return await isServed(store)
  } finally {
    await store.close()
  }
}

/** Whether a server shares the store, and so continues runs that have no process. */
async function isServed({ fleet }: Store): Promise<boolean> {
  const processes = (await fleet.processes?.()) ?? []
  // A command is a process of the fleet as well, but has no URL.
  return processes.some(({ alive, url }) => alive && url !== undefined)
}
