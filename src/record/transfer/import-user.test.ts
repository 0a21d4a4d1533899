/** Whom an imported run belongs to: what a recording says of it is input from outside. */
import { describe, expect, test } from 'vitest'
import type { Entry, EntryOf } from '../../part/entry.ts'
import type { Store } from '../../part/log.ts'
import type { RunUser } from '../../part/principal.ts'
import { endEntry, startEntry } from '../../store/example-run.contract.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { importNdjson } from './import.ts'

const ann: RunUser = { id: 'ann', name: 'Ann', claims: { plan: 'free' } }
const bob: RunUser = { id: 'bob', tenant: 'acme' }

const write = (entries: readonly Entry[]) => entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
const run = (id: string, more: Parameters<typeof startEntry>[1] = {}) => write([startEntry(id, more), endEntry(2)])

async function startOf(store: Store, id: string): Promise<EntryOf<'run-start'>> {
  for await (const [start] of store.log.read(id, { limit: 1 })) return start as EntryOf<'run-start'>
  throw new Error(`no run ${id}`)
}

async function placeOf(store: Store, id: string) {
  const { owner, tenant, threadId } = (await store.runs.get(id))!
  const { user, threadId: recorded } = await startOf(store, id)
  expect(recorded).toBe(threadId)
  return { owner, tenant, threadId, user }
}

describe('importNdjson', () => {
  test.each<[string, RunUser | null | undefined, object]>([
    ['keeps whom the recording says', undefined, { owner: 'bob', tenant: 'acme', threadId: '1@@acme/bob', user: bob }],
    ['removes it', null, { threadId: '1' }],
    ['replaces it', ann, { owner: 'ann', threadId: '1@@ann', user: ann }],
  ])('%s, and the thread follows', async (_, user, expected) => {
    const store = memoryStore()
    await importNdjson(store, run('r', { threadId: '1@@acme/bob', user: bob }), { user })
    expect(await placeOf(store, 'r')).toEqual({ owner: undefined, tenant: undefined, user: undefined, ...expected })
  })

  test('of a recording without a user, the importer is the owner', async () => {
    const store = memoryStore()
    await importNdjson(store, run('r', { threadId: '1' }), { user: ann })
    expect(await placeOf(store, 'r')).toEqual({ owner: 'ann', tenant: undefined, threadId: '1@@ann', user: ann })
  })

  test('the same again by the same user is here already, also with other claims; by another it is another run', async () => {
    const store = memoryStore()
    const text = run('r', { threadId: '1@@acme/bob', user: bob })
    expect(await importNdjson(store, text, { user: ann })).toMatchObject({ isNew: true })
    expect(await importNdjson(store, text, { user: ann })).toMatchObject({ isNew: false })
    const later = { id: 'ann', claims: { plan: 'paid' } }
    expect(await importNdjson(store, text, { user: later })).toMatchObject({ isNew: false })
    for (const user of [bob, null, undefined, { id: 'ann', tenant: 'acme' }])
      await expect(importNdjson(store, text, { user })).rejects.toMatchObject({ code: 'run-exists' })
    const other = run('r', { threadId: '1@@acme/bob', user: bob, agent: 'other' })
    await expect(importNdjson(store, other, { user: ann })).rejects.toMatchObject({ code: 'run-exists' })
  })

  test.each(['previousRunId', 'parentRunId', 'forkedFrom'] as const)(
    '%s of an own run stays; of a run of somebody else it is removed, and so is that of one that is not here, which would tell them apart',
    async (field) => {
      const store = memoryStore()
      await store.log.append('of-bob', 1, [startEntry('of-bob', { user: bob }), endEntry(2)])
      await store.log.append('of-ann', 1, [startEntry('of-ann', { user: ann }), endEntry(2)])
      const naming = (id: string, named: string, more: Parameters<typeof startEntry>[1] = {}) =>
        run(id, { ...more, [field]: field === 'forkedFrom' ? { runId: named, seq: 1 } : named })
      for (const named of ['of-bob', 'of-ann', 'gone']) {
        const id = `names-${named}`
        await importNdjson(store, naming(id, named), { user: ann })
        const start = await startOf(store, id)
        expect(field in start, named).toBe(named === 'of-ann')
        if (field !== 'forkedFrom') expect((await store.runs.get(id))![field]).toBe(start[field])
        // What was removed makes it no other run.
        expect(await importNdjson(store, naming(id, named), { user: ann })).toMatchObject({ isNew: false })
      }
      // A recording that says that it is Ann's.
      await importNdjson(store, naming('said', 'of-bob', { user: ann }))
      expect(field in (await startOf(store, 'said'))).toBe(field === 'forkedFrom')
      // A copy of one's own data may come in any order.
      await importNdjson(store, naming('copied', 'gone', { user: ann }))
      expect(field in (await startOf(store, 'copied'))).toBe(true)
    },
  )

  test('a thread whose id would be too long is refused', async () => {
    const text = run('r', { threadId: 'x'.repeat(2048) })
    await importNdjson(memoryStore(), text)
    await expect(importNdjson(memoryStore(), text, { user: ann })).rejects.toMatchObject({
      code: 'invalid-recording',
      message: expect.stringContaining('line 1: threadId is too long'),
    })
  })
})
