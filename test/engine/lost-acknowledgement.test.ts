/** A store that stores and then says that it failed: the connection broke before the acknowledgement came. */
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { MillraceError } from '../../src/part/error.ts'
import type { Store } from '../../src/part/log.ts'
import { agent, createEngine, entriesOf, taken, type Engine } from '../support/engine.ts'

let engine: Engine
afterEach(() => engine.close())

const messages = [{ role: 'user', content: 'Hi' }]
const lost = () => new MillraceError('store-failed', 'the connection broke')

/** Fails the attempts at an append that `fails` names: those of each batch count from 1. `stores`: only the acknowledgement fails. */
function failing(fails: (append: number, attempt: number) => boolean, stores = true) {
  let append = 0
  let attempt = 0
  let last: unknown
  const seen = { appends: 0 }
  const wrapStore = (store: Store): Store => ({
    ...store,
    log: {
      ...store.log,
      async append(run, epoch, given) {
        const entries = taken(given)
        attempt = last === entries[0]?.seq ? attempt + 1 : 1
        if (attempt === 1) append++
        last = entries[0]?.seq
        seen.appends = append
        const bad = fails(append, attempt)
        if (bad && !stores) throw lost()
        const appended = await store.log.append(run, epoch, entries)
        if (bad) throw lost()
        return appended
      },
    },
  })
  return { wrapStore, seen }
}

function open(wrapStore: (store: Store) => Store) {
  const model = createScriptedModel([
    [text('Let me see. '), toolCall('c', 'look', {}), finish('tool-calls')],
    [text('It is '), text('noon.'), finish()],
  ])
  const look = { parameters: { type: 'object' as const }, execute: async () => 'noon' }
  const agents = { a: agent('tools: [look]') }
  return (engine = createEngine({ agents, tools: { look }, scripts: { m: model }, wrapStore }))
}

async function whatIsStored(wrapStore: (store: Store) => Store) {
  const { runtime, store } = open(wrapStore)
  const run = await runtime.start('a', { messages })
  const result = await run.result
  const entries = await entriesOf(store, run.id)
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, i) => i + 1))
  return { result, types: entries.map(({ type }) => type) }
}

describe.each([
  ['was lost', true],
  ['stands for an append that failed once', false],
])('an acknowledgement that %s', (_, stores) => {
  test('kills no run, wherever it is, and nothing is stored twice', async () => {
    const whole = failing(() => false)
    const expected = await whatIsStored(whole.wrapStore)
    expect(expected.result.outcome).toBe('completed')
    expect(whole.seen.appends).toBeGreaterThan(2)
    await engine.close()
    for (let n = 1; n <= whole.seen.appends; n++) {
      const once = failing((append, attempt) => append === n && attempt === 1, stores)
      const { result, types } = await whatIsStored(once.wrapStore)
      expect(result, `append ${n}`).toMatchObject({ outcome: 'completed', text: expected.result.text })
      expect(types, `append ${n}`).toEqual(expected.types)
      await engine.close()
    }
    const always = failing((_append, attempt) => attempt === 1, stores)
    expect((await whatIsStored(always.wrapStore)).types).toEqual(expected.types)
  })
})

test('a second failure is one of the store', async () => {
  const { wrapStore } = failing((append) => append === 3)
  const { runtime } = open(wrapStore)
  const run = await runtime.start('a', { messages })
  expect(await run.result).toMatchObject({ outcome: 'failed', error: { code: 'store-failed' } })
})
