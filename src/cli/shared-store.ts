/** What the commands know of a store that servers share. */
import type { CommandContext } from './context.ts'
import type { Store } from '../part/log.ts'

/** Whether a process is there that takes what is left in the store. */
export async function isServed({ fleet }: Store): Promise<boolean> {
  const processes = (await fleet.processes?.()) ?? []
  // A command is a process of the fleet, too.
  return processes.some(({ alive, url }) => alive && url !== undefined)
}

/** The same, of the store of a URL. */
export async function isServedBy(context: CommandContext, url: string): Promise<boolean> {
  const store = await openShared(context, url, { joins: false })
  try {
    return await isServed(store)
  } finally {
    await store.close()
  }
}

/** `joins`: its servers see this process. Not needed to read, or to post to runs. */
export async function openShared(context: CommandContext, url: string, { joins = true } = {}): Promise<Store> {
  // Loaded on demand: most commands read a data folder.
  const { archiveOf, openStore } = await import('../project/open-store.ts')
  return openStore({ store: url, data: 'none', joins, archive: archiveOf({}, context.env) })
}
