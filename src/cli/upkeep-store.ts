/** Opens the store of a data folder, or a shared one, to delete and compact in it. */
import { join } from 'node:path'
import type { CommandContext } from './context.ts'
import { MillraceError } from '../part/error.ts'
import type { Store } from '../part/log.ts'
import type { Upkeep } from '../part/upkeep.ts'
import { withRunFiles } from '../record/run-files.ts'
import { openShared } from './shared-store.ts'
import { databaseIn, type Place } from './where.ts'

export async function openForUpkeep(
  context: CommandContext,
  place: Exclude<Place, { type: 'server' }>,
): Promise<Store & { upkeep: Upkeep }> {
  if (place.type === 'folder') {
    const { sqliteStore } = await import('../store/sqlite-store.ts')
    const store = sqliteStore(databaseIn(context, place.data), { migration: false })
    return { ...store, upkeep: withRunFiles(store.upkeep!, context.path(join(place.data, 'runs'))) }
  }
  const store = await openShared(context, place.url)
  const { upkeep } = store
  if (upkeep !== undefined) return { ...store, upkeep }
  await store.close()
  const cure = 'Its servers do that by themselves: see record.retention.'
  throw new MillraceError('usage', `Runs in a shared store cannot be compacted or deleted by hand. ${cure}`)
}
