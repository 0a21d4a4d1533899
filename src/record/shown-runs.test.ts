/** What a user is told of threads, sums and searches is what a store says that has no other runs. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { slowRun } from '../../test/support/recorded.ts'
import type { Entry } from '../part/entry.ts'
import type { Store } from '../part/log.ts'
import type { OwnerFilter, RunUser } from '../part/principal.ts'
import { memoryStore } from '../store/memory-store.ts'
import { isShown, ownerOf } from '../store/run-row.ts'
import { sqliteStore } from '../store/sqlite/store.ts'
import { readStats } from './stats.ts'
import { listThreads, readThread, threadUsage } from './threads/list-threads.ts'
import { readWindow } from './window-stats.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-shown-'))
afterAll(() => rmSync(root, { recursive: true }))
let count = 0
const stores: Record<string, () => Store> = {
  SQLite: () => sqliteStore(join(root, `${count++}.db`)),
  memory: () => memoryStore(),
}

const ann: RunUser = { id: 'ann' }
const annOfAcme: RunUser = { id: 'ann', tenant: 'acme' }
const bob: RunUser = { id: 'bob', tenant: 'acme' }
const users = [ann, annOfAcme, bob, undefined]

const filters: OwnerFilter[] = [
  { owner: 'ann', tenant: '' },
  { owner: 'ann' },
  { owner: 'ann', tenant: 'acme' },
  { tenant: 'acme' },
  { owner: '' },
  { tenant: '' },
  { owner: 'none', tenant: '' },
  {},
]

const now = Date.UTC(2026, 5, 1, 12)
const rule = { closeAfterMs: Infinity, now }

/** A run of a thread that all of them use. Every fourth one has ended with an error. */
function recorded(i: number): Entry[] {
  const user = users[(i * 7) % users.length]
  const entries = slowRun(`run${i}`, now - i * 1_900_000).map((entry) =>
    entry.type === 'run-start'
      ? { ...entry, agent: `agent${i % 3}`, threadId: `thread${i % 2}`, ...(user && { user }) }
      : entry,
  )
  if (i % 4 !== 3) return entries
  const error = { code: `odd-${user?.id}`, message: 'x' }
  const { seq, timestamp } = entries.at(-1)!
  const end = { type: 'run-end', outcome: 'failed', usage: { source: 'reported' }, error } as const
  return [...entries, { seq: seq + 1, timestamp: timestamp + 5, step: '', ...end }]
}

/** Records the runs that a filter shows. */
async function fill(store: Store, filter: OwnerFilter): Promise<Store> {
  for (let i = 0; i < 24; i++) {
    const entries = recorded(i)
    const [start] = entries
    if (start?.type !== 'run-start' || !isShown(ownerOf(start.user), filter)) continue
    await store.log.append(`run${i}`, 1, entries)
  }
  await store.records?.settle()
  return store
}

/** All that is said of the runs that a filter shows. */
async function told(store: Store, filter: OwnerFilter): Promise<unknown> {
  const times = { since: now - 12 * 3_600_000, until: now + 1 }
  const threads = ['thread0', 'thread1', 'none']
  const read = async () => ({
    stats: await readStats(store, { ...times, ...filter }),
    ofAgent: await readStats(store, { ...times, ...filter, agent: 'agent1' }),
    window: await readWindow(store, { ...times, ...filter }),
    threads: await listThreads(store, filter, rule),
    active: await listThreads(store, { ...filter, status: 'active', agent: 'agent2' }, rule),
    found: await listThreads(store, { ...filter, q: 'whale' }, rule),
    each: await Promise.all(threads.map((id) => readThread(store, id, rule, filter))),
    usage: await Promise.all(threads.map((id) => threadUsage(store, id, filter))),
    hits: await store.records?.search({ q: 'whale', limit: 1000, ...filter }),
    phrases: await store.records?.search({ q: '"blue whale"', limit: 1000, threadId: 'thread0', ...filter }),
    runs: await store.runs.list({ search: 'whale', ...filter }),
  })
  await read()
  // Hours may be kept since.
  return read()
}

describe.each(Object.entries(stores))('%s', (_, make) => {
  test.each(filters)('%j', async (filter) => {
    const [all, own] = [await fill(make(), {}), await fill(make(), filter)]
    try {
      expect(await told(all, filter)).toEqual(await told(own, {}))
      // Of those, all.
      const stats = await readStats(all, { since: 0, until: now + 1, ...filter })
      expect(stats.agents.reduce((sum, { count: runs }) => sum + runs, 0)).toBe((await own.runs.list()).length)
    } finally {
      await all.close()
      await own.close()
    }
  })

  test('a thread of others is unknown as `before`', async () => {
    const store = await fill(make(), {})
    const refused = (query: object) => listThreads(store, query, rule).catch(({ code, message }) => [code, message])
    const unknown = await refused({ owner: 'none', before: 'gone' })
    expect(unknown).toMatchObject(['unknown-thread', expect.anything()])
    expect(await refused({ owner: 'none', before: 'thread1' })).toEqual(
      (unknown as string[]).map((text) => text.replace('gone', 'thread1')),
    )
    await store.close()
  })
})
