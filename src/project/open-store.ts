/** Opens the store of a project: the shared one of a URL, else SQLite in the data folder, else memory. */
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { omitUndefined } from '../part/omit-undefined.ts'
import { MillraceError } from '../part/error.ts'
import type { Store } from '../part/log.ts'
import { didYouMean } from '../pipeline/nearest.ts'
import { memoryStore } from '../store/memory-store.ts'
import { createTeller } from '../store/sqlite/migrate.ts'
import { sqliteStore } from '../store/sqlite/store.ts'
import type { RecordConfig } from './config.ts'
import type { Env } from './registry.ts'

export const storeVariable = 'MILLRACE_STORE'
export const archiveVariable = 'MILLRACE_ARCHIVE'

const schemes = ['redis', 'rediss'] as const

export interface StorePlace {
  /** The URL of a shared store. */
  store?: string | undefined
  /** Folder for `millrace.db`; `none` keeps everything in memory. */
  data: string
  busyTimeoutMs?: number | undefined
  /** Where runs of a shared store go after their end: a folder, a SQLite file, or Postgres. */
  archive?: string | undefined
  /** False: a shared store is only read here. */
  joins?: boolean
  /** A database of an older version is refused, not migrated. */
  keepsVersion?: boolean
  /** Called with notices for the operator. */
  warn?: (line: string) => void
}

export async function openStore(place: StorePlace): Promise<Store> {
  const { store, data, busyTimeoutMs, archive, warn, joins, keepsVersion = false } = place
  if (store !== undefined) {
    checkStoreUrl(store)
    const { redisStore } = await import('../store/redis/redis-store.ts')
    const { openArchive } = await import('../store/archive/archive.ts')
    const opened = archive === undefined ? undefined : openArchive(archive)
    // A reader may never need it.
    if (joins !== false) await opened?.load?.()
    return redisStore(store, omitUndefined({ warn, joins, archive: opened }))
  }
  if (data === 'none') return memoryStore()
  // It contains conversations: other accounts of the machine get no access.
  mkdirSync(resolve(data), { recursive: true, mode: 0o700 })
  const file = join(resolve(data), 'millrace.db')
  const migration = keepsVersion ? false : { tell: createTeller(file, (line) => warn?.(line)) }
  return sqliteStore(file, { busyTimeout: busyTimeoutMs, migration })
}

/** The environment, then the config. An empty text is none. */
export function archiveOf({ archive }: RecordConfig, env: Env): string | undefined {
  return env[archiveVariable]?.trim() || archive
}

/** The flag, then the environment, then the config. An empty text is none. Throws `bad-store`. */
export function storeUrlOf({ store }: RecordConfig, given: string | undefined, env: Env): string | undefined {
  const url = [given, env[storeVariable], store].find((each) => each !== undefined && each.trim() !== '')?.trim()
  if (url !== undefined) checkStoreUrl(url)
  return url
}

/** Throws `bad-store`. The message has nothing of the URL but its scheme: the rest may hold a password. */
export function checkStoreUrl(url: string): void {
  const form = 'Write redis://host:6379, or rediss:// for TLS.'
  const scheme = /^([a-z][\w+.-]*):\/\//iu.exec(url)?.[1]?.toLowerCase()
  if (schemes.some((each) => each === scheme)) return
  if (scheme === undefined) throw new MillraceError('bad-store', `The store must be a URL. ${form}`)
  const meant = /^valkeys?$/u.test(scheme)
    ? ` (for Valkey, too, write ${scheme === 'valkeys' ? 'rediss' : 'redis'}://)`
    : didYouMean(scheme, schemes)
  throw new MillraceError('bad-store', `There is no store for ${scheme}://${meant}. ${form}`)
}
