/** When a run reads its inbox, and that a stop finds it whenever it comes. */
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import type { PrimitiveHandler } from '../../src/engine/registry.ts'
import type { Store } from '../../src/part/log.ts'
import { agent, createEngine, type Engine } from '../support/engine.ts'

let engine: Engine
afterEach(() => engine.close())

const messages = [{ role: 'user', content: 'Hi' }]

/** Counts the readers of inboxes. Appends wait for `held`. */
function open(held?: Promise<unknown>) {
  const seen = { reads: 0, appends: 0 }
  const gate = latch()
  const wrapStore = (store: Store): Store => ({
    ...store,
    log: {
      ...store.log,
      async append(run, epoch, entries, view) {
        await held
        seen.appends++
        return store.log.append(run, epoch, entries, view)
      },
      inbox(run, options) {
        seen.reads++
        return store.log.inbox(run, options)
      },
    },
  })
  const model = createScriptedModel([[text('one '), gate, text('two'), finish()]])
  engine = createEngine({ agents: { a: agent('') }, scripts: { m: model }, wrapStore })
  return { seen, gate, ...engine }
}

describe('inbox', () => {
  test('a request that comes while the run ends begins no reading that nobody ends', async () => {
    let reading = 0
    let asked = 0
    const wrapStore = (store: Store): Store => ({
      ...store,
      log: {
        ...store.log,
        inbox(run, options) {
          const messages = store.log.inbox(run, options)
          if (options?.signal === undefined) return messages
          reading++
          options.signal.addEventListener('abort', () => reading--, { once: true })
          if (options.signal.aborted) reading--
          return messages
        },
      },
    })
    /** Some microtasks later: from while the step runs until the run has ended. */
    const late: PrimitiveHandler = async ({ after }: { after: number }, context) => {
      const ask = async () => {
        for (let i = 0; i < after; i++) await Promise.resolve()
        asked++
        await context.request({ message: 'Too late?' })
      }
      ask().catch(() => undefined)
      throw new Error('No more.')
    }
    const workflow = 'workflow: [{ id: s, type: late, config: { after: $input.after } }]'
    engine = createEngine({ agents: { a: workflow }, steps: { late }, wrapStore })
    const outcomes = new Set<string>()
    for (let after = 1; after <= 40; after++) {
      const run = await engine.runtime.start('a', { after, messages })
      outcomes.add((await run.result).outcome)
    }
    // One that asks while its step still runs is suspended.
    expect([asked, reading, [...outcomes]]).toEqual([40, 0, ['suspended', 'failed']])
  })

  test('a run that goes on is stopped by what is posted for it, and reads its inbox once', async () => {
    const { runtime, store, gate, seen } = open()
    const run = await runtime.start('a', { messages })
    await gate.reached
    await store.log.post(run.id, 'stop', { reason: 'Not now.' })
    expect(await run.result).toMatchObject({ outcome: 'aborted', error: { message: 'Not now.' } })
    expect(seen.reads).toBe(1)
  })

  test('a stop that was posted before the first append, by who chose the id, reaches the run', async () => {
    const held = Promise.withResolvers<void>()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { runtime, store, gate, seen } = open(held.promise)
    const starting = runtime.start('a', { messages }, { runId: 'known' })
    await gate.reached
    expect(seen).toEqual({ reads: 1, appends: 0 })
    await store.log.post('known', 'stop', { reason: 'Not now.' })
    held.resolve()
    const run = await starting
    expect(await run.result).toMatchObject({ outcome: 'aborted', error: { message: 'Not now.' } })
  })

  test('a run of a thread, which others may give up, reads its inbox before its first step', async () => {
    const held = Promise.withResolvers<void>()
    const { runtime, seen, gate } = open(held.promise)
    const starting = runtime.start('a', { messages }, { threadId: 't' })
    await gate.reached
    expect(seen).toEqual({ reads: 1, appends: 0 })
    held.resolve()
    gate.open()
    expect((await (await starting).result).outcome).toBe('completed')
    expect(seen.reads).toBe(1)
  })
})
