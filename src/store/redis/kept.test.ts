import { expect, test } from 'vitest'
import { createRecentWrites, keptFor } from './rewrite-lost.ts'
import type { Written } from './writes.ts'

const post = (inbox: string): Written => ({ type: 'post', inbox, args: [] })

test('what was written in the last seconds is kept; while Redis is away nothing of it grows old, and afterwards it is kept as long again', () => {
  let now = 0
  const kept = createRecentWrites(() => now)
  const inboxes = () => kept.all().map((each) => (each as { inbox: string }).inbox)
  kept.add(post('a'))
  now += keptFor + 1
  kept.add(post('b'))
  expect(inboxes()).toEqual(['b'])
  kept.hold(true)
  now += 10 * keptFor
  expect(inboxes()).toEqual(['b'])
  // Written again now: Redis may be killed a second time.
  kept.hold(false)
  now += keptFor - 1
  kept.add(post('c'))
  expect(inboxes()).toEqual(['b', 'c'])
  now += 2
  kept.add(post('d'))
  expect(inboxes()).toEqual(['c', 'd'])
  expect(kept.all('c')).toEqual([post('c')])
})
