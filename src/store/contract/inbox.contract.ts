/** What `post` and `inbox` promise. */
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

    test('gives what is left in order, then live, and goes on after n', async () => {
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
