/** How long a run is waited for that another process has announced. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Store } from '../part/log.ts'
import { startEntry } from '../store/example-run.contract.ts'
import { memoryStore } from '../store/memory-store.ts'
import { awaitStart } from './announcements.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A store that does not answer while it is away. */
function setUp() {
  const store = memoryStore()
  let back = Promise.resolve()
  let comeBack = () => {}
  const runs = {
    ...store.runs,
    async get(run: string) {
      await back
      return store.runs.get(run)
    },
  }
  const shutdown = new AbortController()
  const waiting = awaitStart({ ...store, runs } as Store, 'r', shutdown.signal)
  return {
    store,
    shutdown,
    waiting,
    goAway() {
      ;({ promise: back, resolve: comeBack } = Promise.withResolvers<void>())
    },
    comeBack: () => comeBack(),
    async inbox() {
      const keys: string[] = []
      for await (const { key } of store.log.inbox('r')) keys.push(key)
      return keys
    },
  }
}

describe('announced runs', () => {
  test('a run without an entry after three seconds is kept from starting', async () => {
    const { store, waiting, inbox } = setUp()
    await vi.advanceTimersByTimeAsync(2900)
    expect(await inbox()).toEqual([])
    await vi.advanceTimersByTimeAsync(500)
    expect(await inbox()).toEqual(['stop'])
    expect(await waiting).toBeUndefined()
    await store.close()
  })

  test('the first entry is noticed at once', async () => {
    const { store, waiting, inbox } = setUp()
    await vi.advanceTimersByTimeAsync(1000)
    await store.log.append('r', 1, [startEntry('r')])
    expect(await waiting).toMatchObject({ id: 'r' })
    expect(await inbox()).toEqual([])
    await store.close()
  })

  test('the time in which the store is away does not count: who announced the run has all of it afterwards', async () => {
    const { store, waiting, goAway, comeBack, inbox } = setUp()
    await vi.advanceTimersByTimeAsync(2000)
    goAway()
    await vi.advanceTimersByTimeAsync(4000)
    comeBack()
    await vi.advanceTimersByTimeAsync(2500)
    expect(await inbox()).toEqual([])
    await store.log.append('r', 1, [startEntry('r')])
    expect(await waiting).toMatchObject({ id: 'r' })
    expect(await inbox()).toEqual([])
    await store.close()
  })

  test('nor does the time in which this process was paused', async () => {
    const { store, waiting, inbox } = setUp()
    await vi.advanceTimersByTimeAsync(2000)
    const now = performance.now()
    vi.spyOn(performance, 'now').mockImplementation(() => now + 10_000)
    await vi.advanceTimersByTimeAsync(350)
    expect(await inbox()).toEqual([])
    await store.log.append('r', 1, [startEntry('r')])
    expect(await waiting).toMatchObject({ id: 'r' })
    await store.close()
  })

  test('a process that shuts down waits no longer, and stops nothing', async () => {
    const { store, shutdown, waiting, inbox } = setUp()
    await vi.advanceTimersByTimeAsync(1000)
    shutdown.abort()
    expect(await waiting).toBeUndefined()
    expect(await inbox()).toEqual([])
    await store.close()
  })
})
