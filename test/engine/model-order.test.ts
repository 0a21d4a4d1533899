/** Which model is asked, and how long one that refuses is waited for. */
import { expect, test } from 'vitest'
import { inOrder } from '../../src/engine/model-call.ts'
import type { ModelResolver } from '../../src/models/language-model.ts'
import { finish, text, throws } from '../../src/models/testing/scripted-model.ts'
import { MillraceError } from '../../src/part/error.ts'
import { agent, entriesOf, only, openEngine } from '../support/engine.ts'
import { createTold } from '../support/going-on.ts'

test('a loop asks the model of its last answer first, however long ago the others failed', () => {
  const all = ['a', 'b', 'c'].map((name) => ({ name }))
  const order = (answered?: string) =>
    inOrder({} as ModelResolver, all, answered)
      .map(({ name }) => name)
      .join('')
  expect([order(), order('a'), order('b'), order('c'), order('gone')]).toEqual(['abc', 'abc', 'bca', 'cab', 'abc'])
})

test('Retry-After above 10 s is not waited for: the next model is asked at once', async () => {
  const busy = new MillraceError('rate-limited', 'Busy.', { status: 429, retryAfter: 11 })
  const m = createTold(() => [throws(busy)])
  const next = createTold(() => [text('Here.'), finish()])
  const { runtime, store } = openEngine({
    agents: { a: agent().replace('"script:m"', '["script:m", "script:next"]') },
    scripts: { m, next },
  })
  const run = await runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] })
  expect(await run.result).toMatchObject({ outcome: 'completed', text: 'Here.' })
  expect(m.calls).toHaveLength(1)
  expect(only(await entriesOf(store, run.id), 'retry')).toMatchObject([{ model: 'script:next', delay: 0 }])
})
