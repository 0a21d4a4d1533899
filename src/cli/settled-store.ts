/** Opens the store of a data folder with its tables filled, or a shared one, which has none. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CommandContext } from './context.ts'
import { MillraceError } from '../part/error.ts'
import type { Store } from '../part/log.ts'
import { isHeld } from '../server/data-lock.ts'
import { sqliteStore } from '../store/sqlite-store.ts'
import { openShared } from './shared-store.ts'
import { databaseIn, type Place } from './where.ts'

/** Longest wait for the tables of a live server, in ms. */
const patience = 2000

/** A store whose tables have everything: those of a live server are waited for, others are filled. */
export async function openSettled(context: CommandContext, place: Exclude<Place, { type: 'server' }>): Promise<Store> {
  if (place.type === 'store') return openShared(context, place.url, { joins: false })
  const { data } = place
  const file = databaseIn(context, data)
  if (!isHeld(context.path(data), 'server')) {
    const store = writable(file)
    if (store !== undefined) {
      await store.records!.settle()
      return store
    }
  }
  const store = sqliteStore(file, { readOnly: true })
  for (const end = performance.now() + patience; await store.records!.isBehind(); await sleep(20)) {
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
