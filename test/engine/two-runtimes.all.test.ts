/** Two runtimes on one database, as two processes are: whatever happens to a run at both, it has one owner and one end. */
import { describe, expect, test } from 'vitest'
import type { Run } from '../../src/runtime/runtime.ts'
import { finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { agent, only } from '../support/engine.ts'
import { createTold, eventually } from '../support/going-on.ts'
import { open, said, echo, ended, pausing, asks, asking } from './two-runtimes.ts'

describe('two runtimes', () => {
  test('an owner that does not obey a stop is dead: the run is ended without it', async () => {
    const { gate, wrapStore } = pausing(({ type }) => type === 'text-start')
    const model = createTold(() => [text('late'), finish()])
    const [one, two] = open({ agents: { a: agent() }, scripts: { m: model }, wrapStore }, { agents: {} })
    const run = await one!.runtime.start('a', said('Hi'))
    await gate.reached
    await two!.runtime.stop(run.id, 'Enough.')
    const entries = await ended(two!, run.id)
    gate.open()
    await eventually(() => one!.runtime.active === 0)
    expect(await run.result).toMatchObject({ outcome: 'aborted', text: '', error: { message: 'Enough.' } })
    expect(await ended(two!, run.id)).toEqual(entries)
  })

  test('a deadline that both see closes the request once', async () => {
    const options = { ...asks, requestDeadlineMs: 300 }
    const [one, two] = open(...[asking(), asking()].map((m) => ({ ...options, scripts: { m } })))
    const runs: Run[] = []
    for (let i = 0; i < 5; i++) runs.push(await one!.runtime.start('a', said('Hi')))
    for (const run of runs) await run.result
    await Promise.all([one!, two!].map(({ runtime }) => runtime.recover()))
    for (const { id } of runs) {
      const entries = await ended(two!, id)
      expect(only(entries, 'response')).toMatchObject([{ outcome: 'closed', reason: 'deadline' }])
      expect(only(entries, 'resume')).toHaveLength(1)
      expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'completed' }])
    }
  })

  test('a start that comes too late for its key and its turn ends before its first step', async () => {
    const { gate, wrapStore } = pausing(
      () => false,
      (key) => key.startsWith('after:'),
    )
    const [slow, quick] = [echo(), echo()]
    const agents = { a: agent() }
    const [one, two] = open({ agents, scripts: { m: slow }, wrapStore }, { agents, scripts: { m: quick } })
    const how = { threadId: 't', turnKey: 'k' }
    const late = one!.runtime.start('a', said('x'), how)
    await gate.reached
    const run = await two!.runtime.start('a', said('x'), how)
    expect(await run.result).toMatchObject({ outcome: 'completed' })
    gate.open()
    const other = await late
    expect(other.id).not.toBe(run.id)
    expect(await other.result).toMatchObject({
      outcome: 'aborted',
      error: { message: expect.stringContaining('in time') },
    })
    expect([slow.calls.length, quick.calls.length]).toEqual([0, 1])
    await ended(two!, other.id)
  })

  test('a queued run that is stopped elsewhere does not let the one behind it overtake', async () => {
    const gate = latch()
    const model = () =>
      createTold((prompt) => (JSON.stringify(prompt).includes('hold') ? [gate, finish()] : [text('ok'), finish()]))
    const models = [model(), model()]
    const [one, two] = open(...models.map((m) => ({ agents: { a: agent() }, scripts: { m } })))
    const how = { threadId: 't', onBusy: 'queue' as const }
    const first = await one!.runtime.start('a', said('hold'), how)
    await gate.reached
    const second = await one!.runtime.start('a', said('b'), how)
    const third = await two!.runtime.start('a', said('c'), how)
    await two!.runtime.stop(second.id)
    expect(await second.result).toMatchObject({ outcome: 'aborted', text: '' })
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(models[1]!.calls).toHaveLength(0)
    gate.open()
    expect(await first.result).toMatchObject({ outcome: 'completed' })
    expect(await third.result).toMatchObject({ outcome: 'completed', text: 'ok' })
  })
})
