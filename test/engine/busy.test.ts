/** One active run per thread, however many requests come at once, and one run per turn, however often it is sent. */
import { describe, expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import type { Store } from '../../src/part/log.ts'
import { finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import type { Run } from '../../src/runtime/runtime.ts'
import { agent, entriesOf, only, taken, until, type Engine, openEngine } from '../support/engine.ts'
import { createTold, eventually } from '../support/going-on.ts'

const said = (content: string) => ({ messages: [{ role: 'user', content }] })
const echo = () => createTold((prompt) => [text(JSON.stringify(prompt.at(-1)!.content)), finish()])

/** What is stored, over all runs, in the order in which it is stored. */
function watched() {
  const log: { run: string; type: Entry['type'] }[] = []
  const wrapStore = (store: Store): Store => ({
    ...store,
    log: {
      ...store.log,
      async append(run, epoch, given) {
        const entries = taken(given)
        const appended = await store.log.append(run, epoch, entries)
        for (const { type } of entries) log.push({ run, type })
        return appended
      },
    },
  })
  return { log, wrapStore }
}

/** A run works from its first prompt to its end; in a thread no two do at once. */
function expectOneAtATime(log: { run: string; type: Entry['type'] }[]): void {
  let working: string | undefined
  for (const { run, type } of log) {
    if (type === 'prompt') {
      expect(working ?? run).toBe(run)
      working = run
    } else if (type === 'run-end' && working === run) working = undefined
  }
}

async function twenty(engine: Engine, onBusy: 'queue' | 'interrupt' | 'reject') {
  const starts = Array.from({ length: 20 }, (_, i) =>
    engine.runtime.start('a', said(`n${i}`), { threadId: 't', runId: `run_${i}`, onBusy }),
  )
  return Promise.allSettled(starts)
}

const started = (settled: PromiseSettledResult<Run>[]) =>
  settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))

describe('busy threads', () => {
  test('queue: 20 at once run one at a time, in their order', async () => {
    const { log, wrapStore } = watched()
    const engine = openEngine({ agents: { a: agent() }, scripts: { m: echo() }, wrapStore })
    const runs = started(await twenty(engine, 'queue'))
    expect(runs).toHaveLength(20)
    const results = await Promise.all(runs.map(({ result }) => result))
    expect(results.map(({ outcome, text: answer }) => [outcome, answer.includes('"n')])).toEqual(
      runs.map(() => ['completed', true]),
    )
    expectOneAtATime(log)
    expect(log.filter(({ type }) => type === 'prompt').map(({ run }) => run)).toEqual(runs.map(({ id }) => id))
    for (const { id } of runs) await entriesOf(engine.store, id)
  })

  test('reject: of 20 at once one runs, 19 are told thread-busy and leave nothing', async () => {
    const gate = latch()
    const engine = openEngine({ agents: { a: agent() }, scripts: { m: createTold(() => [text('x'), gate, finish()]) } })
    const settled = await twenty(engine, 'reject')
    const codes = settled.flatMap((each) =>
      each.status === 'rejected' ? [(each.reason as { code: string }).code] : [],
    )
    expect(codes).toEqual(Array.from({ length: 19 }, () => 'thread-busy'))
    gate.open()
    const [run] = started(settled)
    expect(await run!.result).toMatchObject({ outcome: 'completed' })
    expect(await engine.store.runs.list({ threadId: 't' })).toHaveLength(1)
    // And free again.
    const next = await engine.runtime.start('a', said('again'), { threadId: 't', onBusy: 'reject' })
    expect(await next.result).toMatchObject({ outcome: 'completed' })
  })

  test('interrupt: of 20 at once the last wins; each has one end; none works beside another', async () => {
    const { log, wrapStore } = watched()
    const gate = latch()
    const model = createTold(() => [text('x'), gate, finish()])
    const engine = openEngine({ agents: { a: agent() }, scripts: { m: model }, wrapStore })
    const runs = started(await twenty(engine, 'interrupt'))
    expect(runs).toHaveLength(20)
    await until(engine.store, runs.at(-1)!.id, ({ type }) => type === 'prompt')
    gate.open()
    const outcomes = await Promise.all(runs.map(async ({ result }) => (await result).outcome))
    expect(outcomes.at(-1)).toBe('completed')
    expect(new Set(outcomes.slice(0, -1))).toEqual(new Set(['aborted']))
    expectOneAtATime(log)
    for (const { id } of runs) expect(only(await entriesOf(engine.store, id), 'run-end')).toHaveLength(1)
  })

  test('interrupt, with a run that is slow to settle: the last of several waits for it', async () => {
    const { log, wrapStore } = watched()
    const steps = { stubborn: () => new Promise((resolve) => setTimeout(resolve, 5000).unref()) }
    const slow = 'workflow: [{ id: s, type: stubborn }]'
    const engine = openEngine({ agents: { a: agent(), slow }, steps, scripts: { m: echo() }, wrapStore })
    const first = await engine.runtime.start('slow', {}, { threadId: 't' })
    await until(engine.store, first.id, ({ type }) => type === 'step-start')
    const rest = []
    for (let i = 0; i < 3; i++) rest.push(await engine.runtime.start('a', said(`n${i}`), { threadId: 't' }))
    const outcomes = await Promise.all(rest.map(async ({ result }) => (await result).outcome))
    expect(outcomes).toEqual(['aborted', 'aborted', 'completed'])
    const at = (run: string, wanted: string) => log.findIndex(({ run: id, type }) => id === run && type === wanted)
    expect(at(first.id, 'run-end')).toBeGreaterThan(0)
    expect(at(rest[2]!.id, 'prompt')).toBeGreaterThan(at(first.id, 'run-end'))
  })

  test('a queued run that is stopped ends at once, and the one behind it still waits for the one before', async () => {
    const gate = latch()
    const model = createTold((prompt) =>
      JSON.stringify(prompt).includes('hold') ? [gate, text('held'), finish()] : [text('ok'), finish()],
    )
    const engine = openEngine({ agents: { a: agent() }, scripts: { m: model } })
    const how = { threadId: 't', onBusy: 'queue' as const }
    const first = await engine.runtime.start('a', said('hold'), how)
    await gate.reached
    const second = await engine.runtime.start('a', said('b'), how)
    const third = await engine.runtime.start('a', said('c'), how)
    await second.stop()
    expect(await second.result).toMatchObject({ outcome: 'aborted', text: '' })
    expect(model.calls).toHaveLength(1)
    gate.open()
    expect(await first.result).toMatchObject({ outcome: 'completed' })
    expect(await third.result).toMatchObject({ outcome: 'completed' })
    expect(model.calls).toHaveLength(2)
  })

  test('a run that could not begin does not hold up the queue behind it', async () => {
    const gate = latch()
    const wrapStore = (store: Store): Store => ({
      ...store,
      log: {
        ...store.log,
        append: (run, epoch, entries) =>
          run === 'run_bad' ? Promise.reject(new Error('no room')) : store.log.append(run, epoch, entries),
      },
    })
    const model = createTold((prompt) =>
      JSON.stringify(prompt).includes('hold') ? [gate, text('held'), finish()] : [text('ok'), finish()],
    )
    const engine = openEngine({ agents: { a: agent() }, scripts: { m: model }, wrapStore })
    const how = { threadId: 't', onBusy: 'queue' as const }
    const first = await engine.runtime.start('a', said('hold'), how)
    const bad = engine.runtime.start('a', said('x'), { ...how, runId: 'run_bad' })
    const third = engine.runtime.start('a', said('c'), how)
    await expect(bad).rejects.toMatchObject({ code: 'store-failed' })
    gate.open()
    expect(await first.result).toMatchObject({ outcome: 'completed' })
    expect(await (await third).result).toMatchObject({ outcome: 'completed' })
  })

  test('the same turn 20 times at once is one run, whose end all are told', async () => {
    const model = echo()
    const engine = openEngine({ agents: { a: agent() }, scripts: { m: model } })
    const runs = await Promise.all(
      Array.from({ length: 20 }, () => engine.runtime.start('a', said('x'), { threadId: 't', turnKey: 'k' })),
    )
    expect(new Set(runs.map(({ id }) => id)).size).toBe(1)
    expect(runs.filter(({ joined }) => !joined)).toHaveLength(1)
    const outcomes = await Promise.all(runs.map(async ({ result }) => (await result).outcome))
    expect(new Set(outcomes)).toEqual(new Set(['completed']))
    expect(model.calls).toHaveLength(1)
  })

  test('a turn takes its key and its place in one write; one that joins it takes no place', async () => {
    const writes: string[][] = []
    const wrapStore = (store: Store): Store => ({
      ...store,
      log: {
        ...store.log,
        post(run, key, message) {
          writes.push([key])
          return store.log.post(run, key, message)
        },
        postAll(run, messages) {
          writes.push(messages.map(({ key }) => key))
          return store.log.postAll(run, messages)
        },
      },
    })
    const engine = openEngine({ agents: { a: agent() }, scripts: { m: echo() }, wrapStore })
    const start = (turnKey: string) => engine.runtime.start('a', said(turnKey), { threadId: 't', turnKey })
    const first = await start('k')
    await first.result
    expect(writes.splice(0)).toEqual([['turn:a:k', 'after:']])
    expect(await start('k')).toMatchObject({ id: first.id, joined: true })
    const second = await start('l')
    await second.result
    const taken: string[] = []
    for await (const { key } of engine.store.log.inbox('thread:t')) taken.push(key)
    expect(taken).toEqual(['turn:a:k', 'after:', 'turn:a:l', `after:${first.id}`])
  })

  test('a turn that was refused because the thread was busy may come again', async () => {
    const gate = latch()
    const model = createTold((prompt) =>
      JSON.stringify(prompt).includes('hold') ? [gate, text('held'), finish()] : [text('ok'), finish()],
    )
    const engine = openEngine({ agents: { a: agent() }, scripts: { m: model } })
    const how = { threadId: 't', onBusy: 'reject' as const }
    const first = await engine.runtime.start('a', said('hold'), how)
    const again = () => engine.runtime.start('a', said('b'), { ...how, turnKey: 'k' })
    await expect(again()).rejects.toMatchObject({ code: 'thread-busy', status: 409 })
    gate.open()
    await first.result
    expect(await (await again()).result).toMatchObject({ outcome: 'completed', text: 'ok' })
  })

  test('a server that starts does not wait until a thread is free', async () => {
    const agents = { a: agent('', 'recover: true') }
    const holding = createTold(() => [text('first '), latch(), finish()])
    const one = openEngine({ agents, scripts: { m: holding }, keep: true })
    const how = { threadId: 't', onBusy: 'queue' as const }
    await one.runtime.start('a', said('one'), how)
    const last = await one.runtime.start('a', said('two'), how)
    const gate = latch()
    const two = openEngine({ agents, scripts: { m: createTold(() => [gate, text('ok'), finish()]) }, dir: one.dir })
    expect(await two.runtime.recover()).toEqual({ resumed: 2, interrupted: 0 })
    gate.open()
    expect(await (await two.runtime.open(last.id))!.result).toMatchObject({ outcome: 'completed', text: 'ok' })
  })

  test('a queue that a crash left goes on in its order, one at a time', async () => {
    const gate = latch()
    const holding = createTold(() => [text('first '), gate, finish()])
    const agents = { a: agent('', 'recover: true') }
    const one = openEngine({ agents, scripts: { m: holding }, keep: true })
    const how = { threadId: 't', onBusy: 'queue' as const }
    const ids: string[] = []
    for (let i = 0; i < 5; i++) ids.push((await one.runtime.start('a', said(`n${i}`), how)).id)
    await gate.reached
    const { log, wrapStore } = watched()
    const two = openEngine({ agents, scripts: { m: echo() }, dir: one.dir, wrapStore })
    expect(await two.runtime.recover()).toEqual({ resumed: 5, interrupted: 0 })
    for (const id of ids) expect(await (await two.runtime.open(id))!.result).toMatchObject({ outcome: 'completed' })
    expect(log.filter(({ type }) => type === 'prompt').map(({ run }) => run)).toEqual(ids)
    expectOneAtATime(log)
    gate.open()
    for (const id of ids) await entriesOf(two.store, id)
  })

  test('result settles when only it is awaited, and when only parts are read; nobody has to look', async () => {
    const engine = openEngine({ agents: { a: agent('retries: 0') }, scripts: { m: createTold(() => [text('half')]) } })
    const unhandled: unknown[] = []
    const note = (error: unknown) => unhandled.push(error)
    process.on('unhandledRejection', note)
    try {
      const awaited = await engine.runtime.start('a', said('1'))
      expect(await awaited.result).toMatchObject({ outcome: 'failed' })
      const read = await engine.runtime.start('a', said('2'))
      const entries: Entry[] = []
      for await (const entry of read.parts) entries.push(entry)
      expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'failed' }])
      expect(await read.result).toMatchObject({ outcome: 'failed' })
      const ignored = await engine.runtime.start('a', said('3'))
      await eventually(async () => (await engine.store.runs.get(ignored.id))!.status === 'failed')
      // Leaving in the middle changes nothing.
      const left = await engine.runtime.start('a', said('4'))
      for await (const entry of left.parts) if (entry.type === 'run-start') break
      await eventually(async () => (await engine.store.runs.get(left.id))!.status === 'failed')
      await new Promise((resolve) => setImmediate(resolve))
      expect(unhandled).toEqual([])
    } finally {
      process.off('unhandledRejection', note)
    }
  })
})
