/** A step outside of our hands does nothing before its start is stored: after a crash nobody would know of it. */
import { afterEach, describe, expect, test } from 'vitest'
import type { Store } from '../../src/part/log.ts'
import { createEngine, taken, type Engine } from '../support/engine.ts'

let engine: Engine | undefined
afterEach(() => engine?.close())

const agents = {
  a: `workflow:
  - { id: first, type: output-generator, config: { template: { a: 1 } } }
  - { id: pay, type: pay, config: {} }`,
}

describe('storing before reading', () => {
  test('when a custom step begins, its step-start is in the store', async () => {
    let seen: string[] = []
    const opened = createEngine({
      agents,
      steps: {
        pay: async (_, { runId }) => {
          for await (const batch of opened.store.log.read(runId))
            seen = batch.map(({ type, step }) => `${type} ${step}`)
          return 1
        },
      },
    })
    engine = opened
    const run = await opened.runtime.start('a', {})
    expect(await run.result).toMatchObject({ outcome: 'completed' })
    expect(seen).toContain('step-start main/pay')
  })

  test('a custom step whose start the store refuses does nothing', async () => {
    let paid = 0
    const wrapStore = (store: Store): Store => ({
      ...store,
      log: {
        ...store.log,
        async append(run, epoch, given) {
          const entries = taken(given)
          if (entries.some(({ step }) => step === 'main/pay')) throw new Error('no room')
          return store.log.append(run, epoch, entries)
        },
      },
    })
    engine = createEngine({ agents, wrapStore, steps: { pay: async () => ++paid } })
    const run = await engine.runtime.start('a', {}).catch(() => undefined)
    await run?.result
    expect(paid).toBe(0)
  })
})
