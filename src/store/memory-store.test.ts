import { describe, expect, test } from 'vitest'
import { exampleRun } from './example-run.contract.ts'
import { memoryStore } from './memory-store.ts'
import { collect, live, readAll } from './contract/tools.contract.ts'
import { sharedContract } from './contract/shared.contract.ts'
import { storeContract } from './store.contract.ts'

storeContract('memory', () => memoryStore())
sharedContract('memory', async () => {
  const store = memoryStore()
  return [store, store]
})

describe('memoryStore', () => {
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

  test('what a thread was sent, its name, and what is said of a run go with its last run, and with the run', async () => {
    const store = memoryStore({ keep: 1 })
    const inThread = (run: string, threadId: string) =>
      exampleRun(run).map((e) => ({ ...e, ...(e.type === 'run-start' ? { threadId } : {}) }))
    for (const thread of ['t', 'u']) await store.log.post(`thread:${thread}`, 'turn:1', { run: thread })
    await store.log.append('a', 1, inThread('a', 't'))
    const nobody = { user: '', tenant: '', time: 1 }
    await store.feedback!.put({ run: 'a', verdict: 'up', ...nobody })
    const judged = async () => (await store.feedback!.list({})).map(({ run }) => run)
    expect(await judged()).toEqual(['a'])
    await store.log.append('b', 1, inThread('b', 't'))
    await store.titles!.put({ thread: 't', title: 'Rome', ...nobody })
    expect(await judged()).toEqual([])
    expect(await store.log.post('thread:t', 'turn:1', {})).toMatchObject({ first: false })
    expect([...(await store.titles!.of(['t'])).keys()]).toEqual(['t'])
    await store.log.append('c', 1, inThread('c', 'u'))
    expect([...(await store.titles!.of(['t'])).keys()]).toEqual([])
    expect(await store.log.post('thread:t', 'turn:1', {})).toMatchObject({ first: true })
    expect(await store.log.post('thread:u', 'turn:1', {})).toMatchObject({ first: false })
  })

  test('changes are those of the runs that are kept', async () => {
    const store = memoryStore({ keep: 2 })
    for (let i = 0; i < 50; i++) for (const each of exampleRun(`r${i}`)) await store.log.append(`r${i}`, 1, [each])
    const changes = await collect(store.log.changes())
    expect(changes.map(({ run }) => run)).toEqual([...Array(10).fill('r48'), ...Array(10).fill('r49')])
    expect(changes.at(-1)!.n).toBe(500)
    expect(await store.log.position()).toBe(500)
  })

  test('a fork keeps the entries of a source that is dropped', async () => {
    const store = memoryStore({ keep: 1 })
    await store.log.append('a', 1, exampleRun('a'))
    await store.log.fork('a', 5, 'f')
    await store.log.fork('a', 10, 'whole')
    for (const run of ['b', 'c', 'd', 'e']) await store.log.append(run, 1, exampleRun(run))
    expect((await store.runs.list()).map(({ id }) => id)).toEqual(['e', 'd', 'f'])
    expect((await readAll(store, 'f')).slice(1)).toEqual(exampleRun('a').slice(1, 5))
    await expect(store.log.fork('a', 5, 'g')).rejects.toMatchObject({ code: 'unknown-run' })
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

  test('a run that is forgotten is not waited for, as one is that has not begun', async () => {
    const store = memoryStore({ keep: 1 })
    for (const run of ['a', 'b']) await store.log.append(run, 1, exampleRun(run))
    expect(await store.runs.get('a')).toBeUndefined()
    expect(await readAll(store, 'a', 0, live())).toEqual([])
    const later = readAll(store, 'c', 0, live())
    await store.log.append('c', 1, exampleRun('c'))
    expect(await later).toEqual(exampleRun('c'))
  })

  test('a reader that has waited since before a run began gets all of it, though it is forgotten in the same turn', async () => {
    const store = memoryStore({ keep: 0 })
    const reader = store.log.read('a', { signal: live() })[Symbol.asyncIterator]()
    const first = reader.next()
    const entries = exampleRun('a')
    await store.log.append('a', 1, entries)
    expect(await store.runs.get('a')).toBeUndefined()
    expect((await first).value).toEqual(entries)
    expect(await reader.next()).toEqual({ done: true, value: undefined })
  })

  test('what is said in the turn that closes the store is heard', async () => {
    const store = memoryStore()
    const [start, ...rest] = exampleRun('a')
    await store.log.append('a', 1, [start!])
    const reader = store.log.read('a', { signal: live() })[Symbol.asyncIterator]()
    expect((await reader.next()).value).toEqual([start])
    const next = reader.next()
    await Promise.all([store.log.append('a', 1, rest), store.close()])
    expect((await next).value).toEqual(rest)
  })

  test('is not durable', () => expect(memoryStore().durable).toBe(false))

  test('keys of requests are forgotten, the oldest first, before they fill the memory', async () => {
    const { log } = memoryStore()
    for (let i = 0; i <= 10_000; i++) await log.post(`key:${i}`, 'body', i)
    expect(await log.post('key:1', 'body', 'again')).toEqual({ first: false, message: 1 })
    expect(await log.post('key:0', 'body', 'again')).toEqual({ first: true, message: 'again' })
  })
})
