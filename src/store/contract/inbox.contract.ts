/** The contract of `post` and `inbox`. */
import { setImmediate as turn } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Store } from '../../part/log.ts'
import { firstMessages, live } from './tools.contract.ts'

export function inboxContract(current: () => Store): void {
  describe('inbox', () => {
    let store: Store
    beforeEach(() => {
      store = current()
    })

    test('one of fifty posts of a key wins, and all are told its message', async () => {
      const posts = Array.from({ length: 50 }, (_, i) => store.log.post('r', 'answer:1', { i, nested: [i] }))
      const results = await Promise.all(posts)
      const winners = results.filter(({ first }) => first)
      expect(winners).toHaveLength(1)
      for (const { message } of results) expect(message).toEqual(winners[0]!.message)
      expect(await store.log.post('r', 'answer:1', 'late')).toEqual({ ...winners[0], first: false })
      expect(await store.log.post('s', 'answer:1', 'another run')).toEqual({ first: true, message: 'another run' })
    })

    test('posts several messages in order, up to the first whose key is taken', async () => {
      const all = [
        { key: 'turn:1', message: { run: 'a' } },
        { key: 'after:', message: { run: 'a' } },
      ]
      const won = all.map(({ message }) => ({ first: true, message }))
      expect(await store.log.postAll('t', all)).toEqual(won)
      expect(await store.log.postAll('t', all)).toEqual([{ first: false, message: { run: 'a' } }])
      expect(await store.log.postAll('t', [{ key: 'turn:2', message: 2 }, all[1]!, { key: 'x', message: 3 }])).toEqual([
        { first: true, message: 2 },
        { first: false, message: { run: 'a' } },
      ])
      const keys = (await firstMessages(store, 't', 9)).map(({ key }) => key)
      expect(keys).toEqual(['turn:1', 'after:', 'turn:2'])
      expect(await store.log.postAll('t', [])).toEqual([])
    })

    test('of several messages none is posted if one cannot be encoded', async () => {
      const all = [
        { key: 'a', message: 1 },
        { key: 'b', message: 1n },
      ]
      await expect(store.log.postAll('r', all)).rejects.toMatchObject({ code: 'bad-message' })
      expect(await firstMessages(store, 'r', 9)).toEqual([])
    })

    test('several messages wake a reader', async () => {
      const reader = firstMessages(store, 'r', 2, 0, live())
      await turn()
      await store.log.postAll('r', [
        { key: 'a', message: 1 },
        { key: 'b', message: 2 },
      ])
      expect((await reader).map(({ message }) => message)).toEqual([1, 2])
    })

    test('returns stored messages in order, then live ones, and continues after n', async () => {
      await store.log.post('r', 'a', 1)
      const reader = firstMessages(store, 'r', 3, 0, live())
      await turn()
      await store.log.post('r', 'b', { two: 2 })
      await store.log.post('r', 'b', 'lost')
      await store.log.post('r', 'c', null)
      const messages = [
        { n: 1, key: 'a', message: 1 },
        { n: 2, key: 'b', message: { two: 2 } },
        { n: 3, key: 'c', message: null },
      ]
      expect(await reader).toEqual(messages)
      expect(await firstMessages(store, 'r', 9, 1)).toEqual(messages.slice(1))
    })

    test('ends quietly when its signal aborts', async () => {
      const controller = new AbortController()
      const reader = firstMessages(store, 'r', 1, 0, controller.signal)
      await turn()
      controller.abort()
      expect(await reader).toEqual([])
    })
  })
}
