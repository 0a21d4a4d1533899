/** Adds, lists and ends the keys of programs: on a server, in a shared store, or in the data folder of no server. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { MillraceError } from '../../part/error.ts'
import { timeOf, type Store } from '../../part/log.ts'
import { addKey, listKeys, revokeKey, rotateKey, type NewKey, type StoredKey } from '../../server/access/key-book.ts'
import { connectionTarget, type ConnectionFlags } from '../connection.ts'
import type { CommandContext } from '../context.ts'
import { checkData } from '../paths.ts'

export type MadeKey = StoredKey & { secret: string }

export interface KeyConnection {
  /** Those that count come first. */
  list(): Promise<StoredKey[]>
  /** Rejects with `key-exists`. */
  add(key: NewKey): Promise<MadeKey>
  /** Rejects with `unknown-key`. */
  revoke(name: string): Promise<void>
  /** Rejects with `unknown-key`. */
  rotate(name: string): Promise<MadeKey>
  close(): Promise<void>
}

export async function openKeys(context: CommandContext, flags: ConnectionFlags): Promise<KeyConnection> {
  const target = await connectionTarget(context, flags)
  switch (target.type) {
    case 'server': {
      const { createRequest } = await import('./server.ts')
      return serverKeys(createRequest(target.server))
    }
    case 'store': {
      const { openShared } = await import('./shared-store.ts')
      return storeKeys(await openShared(context, target.url, { joins: false }))
    }
    case 'folder':
      return storeKeys(await openFolder(context, target.data))
  }
}

function serverKeys(request: ReturnType<typeof import('./server.ts').createRequest>): KeyConnection {
  const named = (name: string) => `/api/keys/${encodeURIComponent(name)}`
  return {
    list: async () => ((await (await request('/api/keys')).json()) as { keys: StoredKey[] }).keys,
    async add({ expiresAt, ...key }) {
      const expires = expiresAt === undefined ? undefined : new Date(expiresAt).toISOString()
      const body = JSON.stringify({ ...key, expires })
      return (await (await request('/api/keys', { method: 'POST', type: 'application/json', body })).json()) as MadeKey
    },
    async revoke(name) {
      await request(named(name), { method: 'DELETE' })
    },
    rotate: async (name) => (await (await request(`${named(name)}/rotate`, { method: 'POST' })).json()) as MadeKey,
    close: async () => undefined,
  }
}

function storeKeys(store: Store): KeyConnection {
  const { log } = store
  const made = () => ({ now: timeOf(store), by: { id: 'millrace keys' } })
  const keyOf = async (name: string) => (await listKeys(log)).find((key) => key.name === name)!
  return {
    list: () => listKeys(log),
    async add(key) {
      const secret = await addKey(log, key, made())
      return { ...(await keyOf(key.name)), secret }
    },
    revoke: (name) => revokeKey(log, name, made()),
    async rotate(name) {
      const secret = await rotateKey(log, name, made())
      return { ...(await keyOf(name)), secret }
    },
    close: () => store.close(),
  }
}

/** Keys may come before the first run. */
export async function openFolder(context: CommandContext, data: string): Promise<Store> {
  if (data === 'none') throw new MillraceError('usage', 'Keys with --data none are not kept. Name a folder.')
  checkData(context, data)
  mkdirSync(context.path(data), { recursive: true })
  const { sqliteStore } = await import('../../store/sqlite/store.ts')
  return sqliteStore(context.path(join(data, 'millrace.db')), { migration: false })
}
