import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { MillraceError } from '../part/error.ts'
import type { Store } from '../part/log.ts'
import { memoryStore } from './memory-store.ts'
import { storeFailed } from './store-error.ts'
import { watchStore } from './watch-store.ts'

function failing() {
  const inner = memoryStore()
  const state: { error: Error | undefined; largest: number } = { error: undefined, largest: Infinity }
  const store: Store = {
    ...inner,
    log: {
      ...inner.log,
      post: async (run, key, message) => {
        if (state.error !== undefined && JSON.stringify(message).length > state.largest) throw state.error
        if (state.error !== undefined && state.largest === Infinity) throw state.error
        return inner.log.post(run, key, message)
      },
    },
  }
  return { store, state }
}

function watching() {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { store, state } = failing()
  const changes: (string | undefined)[] = []
  const watched = watchStore(store, { onChange: (failure) => changes.push(failure?.code) })
  const post = async () => {
    await watched.store.log.post('run', crypto.randomUUID(), 1).catch(() => undefined)
  }
  return { watched, state, changes, post }
}

const full = storeFailed('cannot write', '/data/millrace.db', new Error('disk full'))

describe('watchStore', () => {
  test('each change is reported once, however many writes fail; the store is tried until it works', async () => {
    const { watched, state, changes, post } = watching()
    await post()
    expect(changes).toEqual([])
    state.error = full
    for (let i = 0; i < 5; i++) await post()
    expect([changes, watched.failure]).toEqual([['store-failed'], full])
    await vi.advanceTimersByTimeAsync(5000)
    expect(changes).toEqual(['store-failed'])
    state.error = undefined
    await vi.advanceTimersByTimeAsync(1000)
    expect([changes, watched.failure]).toEqual([['store-failed', undefined], undefined])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('a small write that succeeds on a full disk is no recovery', async () => {
    const { state, changes, post } = watching()
    state.error = full
    await post()
    state.largest = 1000
    await post()
    await vi.advanceTimersByTimeAsync(3000)
    expect(changes).toEqual(['store-failed'])
  })

  test('what a store refuses for good reason is no failure of the store', async () => {
    const { watched, state, changes, post } = watching()
    state.error = new MillraceError('stale-writer', 'Another process owns the run.')
    await post()
    expect([changes, watched.failure]).toEqual([[], undefined])
  })

  test('a store that is closed is not tried again', async () => {
    const { watched, state, changes, post } = watching()
    state.error = full
    await post()
    await watched.store.close()
    state.error = undefined
    await vi.advanceTimersByTimeAsync(5000)
    expect([changes, vi.getTimerCount()]).toEqual([['store-failed'], 0])
  })
})
