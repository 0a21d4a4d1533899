/** A crash behind any entry: ended truthfully, or gone on with from the last complete model or tool call. */
import { describe, expect, test } from 'vitest'
import { finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only, until, openEngine } from '../support/engine.ts'
import { createTold, eventually } from '../support/going-on.ts'

const messages = [{ role: 'user', content: 'Hi' }]

describe('two owners of one run', () => {
  function held() {
    const gate = latch()
    // Held open behind its last word: the call is still under way when its run is lost.
    const first = createTold(() => [text('first '), gate, text('never'), latch(), finish()])
    const second = createTold(() => [text('second'), finish()])
    return { gate, first, second }
  }

  test('the one before is refused and says nothing more, and the one behind is not disturbed', async () => {
    const { gate, first, second } = held()
    const agents = { a: agent('', 'recover: true') }
    const one = openEngine({ agents, scripts: { m: first }, keep: true })
    const run = await one.runtime.start('a', { messages })
    await until(one.store, run.id, (entry) => entry.type === 'text-end')
    const two = openEngine({ agents, scripts: { m: second }, dir: one.dir })
    expect(await two.runtime.recover()).toEqual({ resumed: 1, interrupted: 0 })
    const lost: unknown[] = []
    one.runtime.onLost(run.id, (error) => lost.push(error))
    const resumed = (await two.runtime.open(run.id))!
    expect(await resumed.result).toMatchObject({ outcome: 'completed', text: 'second' })
    gate.open()
    // Whoever follows it at the first one reads what the second one writes.
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'second' })
    await eventually(() => one.runtime.active === 0)
    expect(lost).toEqual([])
    expect(first.calls[0]!.abortSignal?.aborted).toBe(true)
    const entries = await entriesOf(two.store, run.id)
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'completed' }])
    expect(JSON.stringify(entries)).not.toContain('never')
  })

  test('the one before does not end a run that the one behind still works on', async () => {
    const { gate, first } = held()
    const later = latch()
    const second = createTold(() => [text('second'), later, finish()])
    const agents = { a: agent('', 'recover: true') }
    const one = openEngine({ agents, scripts: { m: first }, keep: true })
    const run = await one.runtime.start('a', { messages })
    await until(one.store, run.id, (entry) => entry.type === 'text-end')
    const two = openEngine({ agents, scripts: { m: second }, dir: one.dir })
    await two.runtime.recover()
    await later.reached
    gate.open()
    await eventually(() => one.runtime.active === 0)
    // Longer than the first would wait before it tried to end what it lost.
    await new Promise((resolve) => setTimeout(resolve, 250))
    expect((await two.store.runs.get(run.id))!.status).toBe('running')
    later.open()
    expect(await (await two.runtime.open(run.id))!.result).toMatchObject({ outcome: 'completed', text: 'second' })
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'second' })
  })

  test('interrupted by the one behind: that is how the one before sees it end', async () => {
    const { gate, first } = held()
    const agents = { a: agent() }
    const one = openEngine({ agents, scripts: { m: first }, keep: true })
    const run = await one.runtime.start('a', { messages })
    await until(one.store, run.id, (entry) => entry.type === 'text-end')
    const two = openEngine({ agents, dir: one.dir })
    expect(await two.runtime.recover()).toEqual({ resumed: 0, interrupted: 1 })
    gate.open()
    expect(await run.result).toMatchObject({ outcome: 'interrupted', text: 'first ' })
    expect(only(await entriesOf(two.store, run.id), 'run-end')).toHaveLength(1)
  })
})
