import { expect, test } from 'vitest'
import { exampleRun } from './example-run.contract.ts'
import { memoryStore } from './memory-store.ts'
import { readAll, storeContract } from './store.contract.ts'

storeContract('memory', () => memoryStore())

test('keeps the runs that ended last, and their messages', async () => {
  const store = memoryStore({ keep: 2 })
  for (const run of ['a', 'b', 'c']) {
    await store.log.post(run, 'stop', run)
    await store.log.append(run, 1, exampleRun(run))
  }
  await store.log.append('d', 1, exampleRun('d').slice(0, 3))
  expect((await store.runs.list()).map(({ id }) => id)).toEqual(['d', 'c', 'b'])
  expect(await store.runs.get('a')).toBeUndefined()
  expect(await store.log.post('a', 'stop', 'again')).toMatchObject({ first: true })
  expect(await store.log.post('b', 'stop', 'again')).toMatchObject({ first: false })
})

test('a reader inside a run that is dropped still gets all of it', async () => {
  const store = memoryStore({ keep: 1 })
  const entries = exampleRun('a', 3000)
  await store.log.append('a', 1, entries)
  const got = []
  for await (const batch of store.log.read('a')) {
    got.push(...batch)
    if (got.length === batch.length) await store.log.append('b', 1, exampleRun('b'))
  }
  expect(await store.runs.get('a')).toBeUndefined()
  expect(got).toEqual(entries)
  expect(await readAll(store, 'b')).toHaveLength(10)
})

test('is not durable', () => expect(memoryStore().durable).toBe(false))
