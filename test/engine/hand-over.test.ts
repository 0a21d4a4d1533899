/** A process of a fleet that shuts down leaves its runs between two calls: the next one has nothing to reset, and nothing happens twice. */
import { rmSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Store } from '../../src/part/log.ts'
import { finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import {
  agent,
  createEngine,
  entriesOf,
  newFolder,
  only,
  until,
  type Engine,
  type EngineOptions,
} from '../support/engine.ts'
import { createTold, eventually, resultsIn } from '../support/going-on.ts'

const engines: Engine[] = []
let dir: string | undefined
afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close()
  if (dir !== undefined) rmSync(dir, { recursive: true, force: true })
  dir = undefined
})

/** As if other processes shared the file. */
const wrapStore = (store: Store): Store => ({ ...store, fleet: { ...store.fleet, shared: true } })
function open(options: EngineOptions): Engine {
  dir ??= newFolder()
  const engine = createEngine({ ...options, dir, keep: true, wrapStore })
  engines.push(engine)
  return engine
}

const messages = [{ role: 'user', content: 'go' }]

describe('handing runs over', () => {
  for (const recover of [true, false]) {
    test(`a tool that is under way ends here; the next call begins there; recover: ${recover}`, async () => {
      const held = latch()
      const ran: string[] = []
      const stepped: number[] = []
      const tools = {
        slow: {
          parameters: z.looseObject({}),
          async execute() {
            held.arrive()
            await held.opened
            ran.push('slow')
            return 'slowly'
          },
        },
        next: { parameters: z.looseObject({}), execute: () => void ran.push('next') },
      }
      const model = createTold((prompt) => {
        const results = resultsIn(prompt)
        if (results.size === 0) return [toolCall('c1', 'slow', {}), finish('tool-calls')]
        if (results.size === 1) return [toolCall('c2', 'next', {}), finish('tool-calls')]
        return [text('done'), finish()]
      })
      const options: EngineOptions = {
        agents: { a: agent('tools: [slow, next]\nonStepFinish: stepped', `recover: ${recover}`) },
        tools,
        callbacks: { stepped: () => void stepped.push(1) },
        scripts: { m: model },
      }
      const first = open(options)
      const { id } = await first.runtime.start('a', { messages })
      await held.reached
      const closed = first.runtime.close(10_000)
      held.open()
      await closed
      // The first tool has ended, and nothing began after it: neither the callback nor the next call.
      expect([ran, stepped.length, model.calls.length]).toEqual([['slow'], 0, 1])
      const second = open(options)
      expect(await second.runtime.recover()).toEqual({ resumed: 1, interrupted: 0 })
      expect(await (await second.runtime.open(id))!.result).toMatchObject({ outcome: 'completed', text: 'done' })
      expect(ran).toEqual(['slow', 'next'])
      expect([stepped.length, model.calls.length]).toEqual([3, 3])
      const entries = await entriesOf(second.store, id)
      expect(only(entries, 'step-reset')).toEqual([])
      expect(only(entries, 'warning').map(({ code }) => code)).toEqual(['server-stopped', 'recovered'])
    })
  }

  test('a run that waits for its turn in its thread is handed over in its place', async () => {
    const gate = latch()
    const model = createTold(() => [text('one'), gate, finish()])
    const options = { agents: { a: agent('', 'recover: true') }, scripts: { m: model } }
    const first = open(options)
    const front = await first.runtime.start('a', { messages }, { threadId: 't', onBusy: 'queue' })
    const back = await first.runtime.start('a', { messages }, { threadId: 't', onBusy: 'queue' })
    await eventually(() => model.calls.length === 1)
    const closed = first.runtime.close(10_000)
    // At once: the run in front of it is still at work.
    await until(first.store, back.id, ({ type }) => type === 'warning')
    gate.open()
    await closed
    expect((await entriesOf(open(options).store, back.id)).map(({ type }) => type)).toEqual(['run-start', 'warning'])
    const second = engines.at(-1)!
    await second.runtime.recover()
    await until(second.store, back.id, ({ type }) => type === 'run-end')
    const [a, b] = [await entriesOf(second.store, front.id), await entriesOf(second.store, back.id)]
    expect([a, b].map((entries) => only(entries, 'run-end').map(({ outcome }) => outcome))).toEqual([
      ['completed'],
      ['completed'],
    ])
    expect(only(a, 'step-reset').length + only(b, 'step-reset').length).toBe(0)
  })

  test('what cannot be handed over in time ends as before: recovered with `recover`, else interrupted', async () => {
    const gate = latch()
    const model = createTold(() => [text('one '), gate, finish()])
    const agents = { kept: agent('', 'recover: true'), lost: agent('', 'recover: false') }
    const first = open({ agents, scripts: { m: model } })
    const runs = [await first.runtime.start('kept', { messages }), await first.runtime.start('lost', { messages })]
    await eventually(() => model.calls.length === 2)
    const results = Promise.all(runs.map(({ result }) => result))
    await first.runtime.close(50)
    expect(await results).toMatchObject([
      { outcome: 'moved', text: 'one ', error: { code: 'run-moved' } },
      { outcome: 'interrupted', text: 'one ', error: { code: 'interrupted' } },
    ])
    gate.open()
    const second = open({ agents, scripts: { m: model } })
    expect(await second.runtime.recover()).toEqual({ resumed: 1, interrupted: 0 })
    expect(await (await second.runtime.open(runs[0]!.id))!.result).toMatchObject({ outcome: 'completed' })
    expect(await (await second.runtime.open(runs[1]!.id))!.result).toMatchObject({ outcome: 'interrupted' })
  })
})
