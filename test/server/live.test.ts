/** `GET /api/live`: rows of runs, entries of some runs and reloads of agents over one connection. */
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { foldRun } from '../../src/fold/run-fold.ts'
import { createScriptedModel, finish, latch, text, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { createListeners } from '../../src/server/serve.ts'
import { version } from '../../src/server/version.ts'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import { agent, entriesOf } from '../support/engine.ts'
import { startServer } from '../support/server.ts'
import { type Frame, type EntryFrame, start } from './live-readers.ts'

const messages = [{ role: 'user', content: 'Hi' }]
const says = (...script: ScriptStep[][]) => createScriptedModel(script)

const ofType = (type: Entry['type'], run?: string) => (frame: Frame) =>
  frame.event === 'entry' && frame.data.entry.type === type && (run === undefined || frame.data.run === run)
const viewOf = (entries: readonly Entry[]) => {
  const fold = foldRun()
  for (const entry of entries) fold.apply(entry)
  return fold.view()
}

test('a token is at the reader before the model goes on, each time; those that come together are merged', async () => {
  const gates = [latch(), latch(), latch()]
  const delta = (word: string): ScriptStep => ({ type: 'text-delta', id: 't', delta: word })
  const burst = Array.from({ length: 200 }, (_, i) => delta(`${i} `))
  const script = [
    { type: 'text-start', id: 't' },
    delta('one'),
    gates[0]!,
    delta('two'),
    gates[1]!,
    ...burst,
    gates[2]!,
  ]
  const { runtime, watch, store } = await start({
    scripts: { m: says([...(script as ScriptStep[]), { type: 'text-end', id: 't' }, finish()]) },
  })
  const run = await runtime.start('a', { messages })
  const live = await watch(`runs=${run.id}~0`)
  const ends = (word: string) => (frame: Frame) =>
    frame.event === 'entry' && frame.data.entry.type === 'text-delta' && frame.data.entry.delta.endsWith(word)
  await live.until(ends('one'))
  gates[0]!.open()
  await live.until(ends('two'))
  gates[1]!.open()
  await live.until(ends('199 '))
  gates[2]!.open()
  await live.until(ofType('run-end'))
  const all = await entriesOf(store, run.id)
  expect(viewOf(live.entries)).toEqual(viewOf(all))
  expect(live.entries.length).toBeLessThan(all.length - 100)
  // Whoever reads on after any frame misses nothing: each says where it begins.
  const covered = live.entries.flatMap(({ seq, firstSeq = seq }) =>
    Array.from({ length: seq - firstSeq + 1 }, (_, i) => firstSeq + i),
  )
  expect(covered).toEqual(all.map(({ seq }) => seq))
})

test('stored entries first, of several runs, each from its own place; Last-Event-ID wins for its run', async () => {
  const turn = [text('Hel', 'lo'), finish()]
  const { runtime, watch, store } = await start({ scripts: { m: says(turn, turn) } })
  const [a, b] = [await runtime.start('a', { messages }), await runtime.start('a', { messages })]
  await Promise.all([a.result, b.result])
  const ofA = await entriesOf(store, a.id)
  const plain = ({ type, seq }: Entry) => [type, seq]
  for (const k of [0, 3, ofA.length - 1]) {
    const live = await watch(`runs=${a.id}~0,${b.id}~2`, { 'last-event-id': `${a.id}~${k}` })
    await live.until(ofType('run-end', a.id))
    await live.until(ofType('run-end', b.id))
    const seen = (run: string) => live.frames.filter((each) => each.event === 'entry' && each.data.run === run)
    const told = (run: string) => seen(run).map((each) => (each as EntryFrame).data.entry)
    expect(told(a.id).at(-1)).toEqual(JSON.parse(JSON.stringify(ofA.at(-1))))
    expect(
      told(a.id)
        .filter(({ type }) => type !== 'text-delta')
        .map(plain),
    ).toEqual(
      ofA
        .slice(k)
        .filter(({ type }) => type !== 'text-delta')
        .map(plain),
    )
    expect(told(b.id)[0]!.seq).toBe(3)
    expect(seen(a.id).map((each) => (each as EntryFrame).id)).toEqual(told(a.id).map(({ seq }) => `${a.id}~${seq}`))
  }
})

test('who is not there, not any more, or another one by now is gone', async () => {
  const { runtime, watch, store } = await start({ scripts: { m: says([text('a', 'b', 'c', 'd'), finish()]) } })
  const run = await runtime.start('a', { messages })
  await run.result
  const { lastSeq } = (await store.runs.get(run.id))!
  const live = await watch(`runs=run_none~0,${run.id}~${lastSeq + 1}`)
  await live.until(({ event }) => event === 'gone')
  expect(live.frames).toEqual([
    { event: 'gone', data: { run: 'run_none', reason: 'unknown' } },
    { event: 'gone', data: { run: run.id, reason: 'lost' } },
  ])
  await store.upkeep!.compact(run.id)
  const merged = (await entriesOf(store, run.id)).find(({ firstSeq }) => firstSeq !== undefined)!
  const other = await watch(`runs=${run.id}~${merged.firstSeq}`)
  expect(await other.until(({ event }) => event === 'gone')).toMatchObject({ data: { reason: 'compacted' } })
})

test('rows: the newest runs at once, then what changes, also in another process, and what ends', async () => {
  const gate = latch()
  const { runtime, watch, dir } = await start({
    scripts: { m: says([text('a'), finish()], [text('b'), gate, finish()]) },
  })
  const first = await runtime.start('a', { messages })
  await first.result
  const live = await watch('rows=1')
  const row = (id: string, status: string) => (frame: Frame) =>
    frame.event === 'row' && frame.data.id === id && frame.data.status === status
  await live.until(row(first.id, 'completed'))
  const second = await runtime.start('a', { messages })
  const shown = await live.until(row(second.id, 'running'))
  expect(shown).toMatchObject({ data: { agent: 'a', title: 'Hi' } })
  gate.open()
  await live.until(row(second.id, 'completed'))
  const elsewhere = sqliteStore(join(dir, 'millrace.db'))
  onTestFinished(() => elsewhere.close())
  await elsewhere.log.append('run_other', 1, [
    {
      seq: 1,
      timestamp: 0,
      step: '',
      type: 'run-start',
      runId: 'run_other',
      agent: 'b',
      pipeline: '',
      threadId: 't',
      protocol: 'api',
      input: {},
    },
  ])
  await live.until(row('run_other', 'running'))
  // All who watch share one cursor: the second gets what the first gets.
  const more = await watch('rows=1')
  await more.until(row('run_other', 'running'))
  expect(more.frames.filter((each) => row(second.id, 'completed')(each))).toHaveLength(1)
})

test('hold: leaving stops a run whose agent says so, and a second holder keeps it', async () => {
  const held = () => [text('a'), latch(), finish()]
  const { runtime, watch, store } = await start({
    agents: { a: agent('', 'onDisconnect: cancel') },
    scripts: { m: says(held(), held()) },
  })
  const run = await runtime.start('a', { messages })
  const [one, two] = [await watch(`hold=${run.id}`), await watch(`hold=${run.id}&runs=${run.id}~0`)]
  await two.until(ofType('text-delta'))
  one.leave()
  const watcher = await watch(`runs=${run.id}~0`)
  await watcher.until(ofType('text-delta'))
  expect((await store.runs.get(run.id))!.status).toBe('running')
  two.leave()
  // Following is not holding.
  await watcher.until(ofType('run-end'))
  expect((await store.runs.get(run.id))!.status).toBe('aborted')
})

test('agents, silence, and the end of the server', async () => {
  const reloads = createListeners()
  const server = await startServer({ agents: { a: agent() } }, { onAgents: reloads.listen, keepAliveMs: 20 })
  const response = await fetch(`${server.url}/api/live?agents=1`)
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let body = ''
  const has = async (part: string) => {
    while (!body.includes(part)) body += (await reader.read()).value ?? ''
  }
  await has(': keep-alive\n\n')
  reloads.tell()
  await has('event: agents\ndata: {}\n\n')
  body = ''
  await has(': keep-alive\n\n')
  await server.close()
  while (!(await reader.read()).done);
  expect(server.reported).toEqual([])
})

test('what the server can do', async () => {
  const { url } = await start({}, { edit: true, maxBodyBytes: 1000 })
  expect(await (await fetch(`${url}/api/server`)).json()).toEqual({
    version,
    durable: true,
    edit: true,
    maxBodyBytes: 1000,
    features: { records: true, upkeep: true, sockets: false, tests: false },
  })
})

describe('what makes no sense is refused', () => {
  test.each([
    ['rows=2', 'rows must be 1 or 0.'],
    ['runs=r', 'runs must be made of <run>~<seq>, and "r" is not.'],
    ['runs=r~x', 'the seq of r must be a whole number'],
    ['runs=r~1,r~2', 'a list in which each run is named once, and r is named again'],
    ['runs=%25zz~1', 'runs must be a list of ids, each encoded'],
    [`runs=${Array.from({ length: 65 }, (_, i) => `r${i}~0`).join(',')}`, 'runs must be a list of at most 64 runs'],
    ['holds=r', 'Unknown parameter "holds" (did you mean "hold"?)'],
  ])('%s', async (search, message) => {
    const { url } = await start({})
    const response = await fetch(`${url}/api/live?${search}`)
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: expect.objectContaining({ message: expect.stringContaining(message) as string }) },
    ])
  })
})
