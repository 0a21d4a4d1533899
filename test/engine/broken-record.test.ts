/** What a record may not do: make a run unendable, keep the server from starting, or take a thread with it. */
import { rmSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { agentSource } from '../../src/project/create-runtime.ts'
import type { Entry } from '../../src/part/entry.ts'
import { MillraceError } from '../../src/part/error.ts'
import type { Part } from '../../src/part/part.ts'
import type { Store } from '../../src/part/log.ts'
import { parsePipeline } from '../../src/pipeline/parse.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { createRuntime } from '../../src/runtime/create-runtime.ts'
import { finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only, taken, until, type Engine, createEngine, openEngine } from '../support/engine.ts'
import { createTold, eventually, resultsIn } from '../support/going-on.ts'

const messages = [{ role: 'user' as const, content: 'Hi' }]
const tools = [{ name: 'ask', parameters: { type: 'object' } }]
const asks = () =>
  createTold((prompt) =>
    resultsIn(prompt).size === 0 ? [toolCall('c', 'ask', {}), finish('tool-calls')] : [text('ok'), finish()],
  )

/** A store whose records hold a YAML that today's parser refuses. */
function unreadable(store: Store, only: (run: string) => boolean = () => true): Store {
  const damage = (entry: Entry): Entry => (entry.type === 'run-start' ? { ...entry, pipeline: 'workflow: [' } : entry)
  return {
    ...store,
    log: {
      ...store.log,
      async *read(run, ...rest) {
        for await (const batch of store.log.read(run, ...rest)) yield only(run) ? batch.map(damage) : batch
      },
    },
  }
}

async function suspended(): Promise<{ engine: Engine; run: string; requestId: string }> {
  const agents = { a: agent() }
  const first = createEngine({ agents, scripts: { m: asks() }, keep: true })
  const run = await first.runtime.start('a', { messages, tools }, { threadId: 't' })
  expect(await run.result).toMatchObject({ outcome: 'suspended' })
  const { requestId } = (await until(first.store, run.id, (e) => e.type === 'request')) as { requestId: string } & Entry
  await first.close()
  const engine = openEngine({ agents, scripts: { m: asks() }, dir: first.dir, wrapStore: (store) => unreadable(store) })
  expect(await engine.runtime.recover()).toEqual({ resumed: 0, interrupted: 0 })
  return { engine, run: run.id, requestId }
}

test('a run whose stored pipeline is refused can be stopped', async () => {
  const { engine, run } = await suspended()
  await engine.runtime.stop(run, 'Enough.')
  expect((await engine.store.runs.get(run))?.status).toBe('aborted')
})

test('a run whose stored pipeline is refused ends as interrupted when it is answered, and its thread goes on', async () => {
  const { engine, run, requestId } = await suspended()
  await engine.runtime.answer(run, requestId, { kind: 'tool', output: 1 })
  expect((await engine.store.runs.get(run))?.status).toBe('interrupted')
  await entriesOf(engine.store, run)
  const next = await engine.runtime.start('a', { messages, tools }, { threadId: 't' })
  expect(await next.result).toMatchObject({ outcome: 'suspended' })
})

test('one run that cannot be read keeps neither the server from starting nor the others from going on', async () => {
  const agents = { a: agent('', 'recover: true') }
  const gate = latch()
  const held = () => createTold(() => [text('one '), gate, text('two'), finish()])
  const first = createEngine({ agents, scripts: { m: held() }, keep: true })
  const runs = []
  for (let i = 0; i < 2; i++) {
    const run = await first.runtime.start('a', { messages })
    await until(first.store, run.id, (entry) => entry.type === 'text-end')
    runs.push(run)
  }
  await first.runtime.close(0)
  const broken = runs[0]!.id
  const wrapStore = (store: Store): Store => ({
    ...store,
    log: {
      ...store.log,
      read: (run, ...rest) => {
        if (run === broken) throw new Error('the disk has a hole here')
        return store.log.read(run, ...rest)
      },
    },
  })
  const second = openEngine({
    agents,
    scripts: { m: createTold(() => [text('again'), finish()]) },
    dir: first.dir,
    wrapStore,
  })
  expect(await second.runtime.recover()).toEqual({ resumed: 1, interrupted: 0 })
  expect(await (await second.runtime.open(runs[1]!.id))!.result).toMatchObject({ outcome: 'completed', text: 'again' })
  rmSync(first.dir, { recursive: true, force: true })
})

const custom = 'workflow: [{ id: mine, type: mine, config: {}, result: r }]'

test('a part of a custom step cannot say where and when it was said', async () => {
  const lies = { type: 'data', name: 'x', data: 1, seq: 99, timestamp: 5, step: 'main/other' } as Part
  const engine = openEngine({
    agents: { a: custom },
    steps: {
      mine: async (_, { emit }) => {
        emit(lies)
        return 'v'
      },
    },
  })
  const run = await engine.runtime.start('a', {}, { threadId: 't' })
  expect(await run.result).toMatchObject({ outcome: 'completed' })
  expect(only(await entriesOf(engine.store, run.id), 'data')).toMatchObject([{ step: 'main/mine', seq: 3 }])
})

test('a model of one’s own that gives a call’s arguments as a value is heard', async () => {
  const call = { type: 'tool-call', toolCallId: 'c', toolName: 'calculator', input: { expression: '1 + 1' } } as never
  const model = createTold((prompt) =>
    resultsIn(prompt).size === 0 ? [call, finish('tool-calls')] : [text('done'), finish()],
  )
  const engine = openEngine({ agents: { a: agent('tools: [calculator]') }, scripts: { m: model } })
  const run = await engine.runtime.start('a', { messages })
  expect(await run.result).toMatchObject({ outcome: 'completed', text: 'done' })
  expect(only(await entriesOf(engine.store, run.id), 'tool-call')[0]!.input).toBe('{"expression":"1 + 1"}')
})

test('a store that refuses as stale what nobody took over: the run is ended, not left for ever', async () => {
  let skip = true
  const wrapStore = (store: Store): Store => ({
    ...store,
    log: {
      ...store.log,
      async append(run, epoch, given) {
        const entries = taken(given)
        const at = skip ? entries.findIndex(({ type }) => type === 'data') : -1
        if (at < 0) return store.log.append(run, epoch, entries)
        skip = false
        // As a writer with a gap: seq 99.
        return store.log.append(
          run,
          epoch,
          entries.map((entry, i) => (i === at ? { ...entry, seq: 99 } : entry)),
        )
      },
    },
  })
  const engine = openEngine({
    agents: { a: custom },
    wrapStore,
    steps: {
      mine: async (_, { emit }) => {
        emit({ type: 'data', name: 'x', data: 1 })
        return 'v'
      },
    },
  })
  const run = await engine.runtime.start('a', {}, { threadId: 't' })
  await run.result
  await eventually(async () => (await engine.store.runs.get(run.id))?.status === 'failed')
  expect(engine.runtime.active).toBe(0)
})

test('a store whose inbox cannot be read: the run goes to its end all the same', async () => {
  const wrapStore = (store: Store): Store => ({
    ...store,
    log: {
      ...store.log,
      inbox: () => {
        throw new Error('no inbox')
      },
    },
  })
  const engine = openEngine({ agents: { a: custom }, wrapStore, steps: { mine: async () => 'v' } })
  const run = await engine.runtime.start('a', {})
  expect(await run.result).toMatchObject({ outcome: 'completed', output: { r: 'v' } })
})

describe('a run that nothing can be said of, for want of a clock', () => {
  function clocked() {
    const clock = { stopped: false }
    const [began, goes] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const store = memoryStore()
    const read = () => {
      if (clock.stopped) throw new Error('the clock has stopped')
      return Date.now()
    }
    const mine = async () => {
      began.resolve()
      await goes.promise
      return 'v'
    }
    const runtime = createRuntime({
      agents: agentSource([{ id: 'a', pipeline: parsePipeline(custom) }]),
      registry: {
        tools: new Map(),
        callbacks: new Map(),
        steps: new Map([['mine', mine]]),
        models: { providers: [], resolve: () => expect.unreachable() },
      },
      store,
      clock: { wall: read, steady: read },
    })
    // A runtime that a run never leaves waits for it for ever: that is a failure here, and no reason to hang.
    onTestFinished(async () => void (runtime.active === 0 && (await runtime.close(0))))
    return { clock, runtime, store, began: began.promise, go: goes.resolve }
  }

  test('under way it leaves, and is ended as soon as that can be said', async () => {
    const { clock, runtime, store, began, go } = clocked()
    const run = await runtime.start('a', {}, { threadId: 't' })
    await began
    clock.stopped = true
    go()
    await eventually(() => runtime.active === 0)
    expect(await new Promise((tell) => runtime.onLost(run.id, tell))).toMatchObject({ code: 'store-failed' })
    expect((await store.runs.get(run.id))!.status).toBe('running')
    clock.stopped = false
    await eventually(async () => (await store.runs.get(run.id))!.status === 'failed')
    expect(only(await entriesOf(store, run.id), 'run-end')).toHaveLength(1)
    expect(await (await runtime.start('a', {}, { threadId: 't' })).result).toMatchObject({ outcome: 'completed' })
  })

  test('before its first word its start is refused, and the next one of its thread is not', async () => {
    const { clock, runtime, go } = clocked()
    clock.stopped = true
    await expect(runtime.start('a', {}, { threadId: 't' })).rejects.toMatchObject({ status: 503 })
    expect(runtime.active).toBe(0)
    clock.stopped = false
    go()
    expect(await (await runtime.start('a', {}, { threadId: 't' })).result).toMatchObject({ outcome: 'completed' })
  })
})

test('a recording of a run is given again without the envelope of its entries', async () => {
  const engine = openEngine({
    agents: {
      a: agent(),
      b: `workflow:
  - { id: pre, type: output-generator, config: { template: { a: 1 } } }
  - { id: other, type: llm, config: { model: "recording:run_told", stream: true } }`,
    },
    scripts: { m: createTold(() => [text('words'), finish()]) },
  })
  const one = await engine.runtime.start('a', { messages }, { runId: 'run_told' })
  await one.result
  const two = await engine.runtime.start('b', { messages })
  expect(await two.result).toMatchObject({ outcome: 'completed', text: 'words' })
  expect(only(await entriesOf(engine.store, two.id), 'text-delta')).toMatchObject([{ step: 'main/other/1' }])
})

test('an answer whose claim the store refused is not forgotten: the run goes on when the store works again', async () => {
  const state = { broken: false }
  const refuse = () => Promise.reject(new MillraceError('store-failed', 'no room', { status: 503 }))
  const wrapStore = (store: Store): Store => ({
    ...store,
    log: {
      ...store.log,
      claim: (run, epoch) => (state.broken ? refuse() : store.log.claim(run, epoch)),
    },
  })
  const engine = openEngine({ agents: { a: agent() }, scripts: { m: asks() }, wrapStore })
  const run = await engine.runtime.start('a', { messages, tools })
  expect(await run.result).toMatchObject({ outcome: 'suspended' })
  const [request] = only(await entriesOf(engine.store, run.id), 'request')
  state.broken = true
  await expect(run.answer(request!.requestId, { kind: 'tool', output: 1 })).rejects.toMatchObject({
    code: 'store-failed',
  })
  expect((await engine.store.runs.get(run.id))!.status).toBe('suspended')
  state.broken = false
  await until(engine.store, run.id, ({ type }) => type === 'run-end')
  expect(only(await entriesOf(engine.store, run.id), 'run-end')).toMatchObject([{ outcome: 'completed' }])
})

test('a stop whose end the store refused is not forgotten: the run ends as aborted when the store works again', async () => {
  const state = { broken: false }
  const refused = latch()
  const refuse = () => (refused.open(), Promise.reject(new MillraceError('store-failed', 'no room', { status: 503 })))
  const wrapStore = (store: Store): Store => ({
    ...store,
    log: { ...store.log, append: (...args) => (state.broken ? refuse() : store.log.append(...args)) },
  })
  const engine = openEngine({ agents: { a: agent() }, scripts: { m: asks() }, wrapStore })
  const run = await engine.runtime.start('a', { messages, tools })
  expect(await run.result).toMatchObject({ outcome: 'suspended' })
  state.broken = true
  await Promise.allSettled([run.stop('enough'), refused.opened])
  expect((await engine.store.runs.get(run.id))!.status).toBe('running')
  state.broken = false
  await until(engine.store, run.id, ({ type }) => type === 'run-end')
  const ends = only(await entriesOf(engine.store, run.id), 'run-end')
  expect(ends).toMatchObject([{ outcome: 'aborted', error: { code: 'aborted', message: 'enough' } }])
})
