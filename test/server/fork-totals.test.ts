/** What a fork shares with its source is counted once in totals over runs: in stats, threads, metrics and named queries. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHandler } from '../../src/server/handler.ts'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import { createRunMetrics } from '../../src/record/metrics/run-metrics.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { namedQueries } from '../../src/store/tables/named-queries.ts'
import { readView as viewOf } from '../../src/fold/read-view.ts'
import { summaryOf } from '../../src/record/log-files.ts'
import { createEngine, entriesOf, openEngine, type EngineOptions } from '../support/engine.ts'

const yaml = `workflow:
  - { id: one, type: llm, config: { model: "script:one" } }
  - { id: two, type: llm, config: { model: "script:two", stream: true } }
`
const stores: Record<string, Partial<EngineOptions>> = {
  SQLite: {},
  memory: {
    wrapStore: (store) => {
      void store.close()
      return memoryStore()
    },
  },
}
const used = { in: 10, out: 5 }

async function forked(more: Partial<EngineOptions>) {
  const script = () => createScriptedModel(Array.from({ length: 4 }, () => [text('Hi'), finish('stop', used)]))
  const engine = createEngine({
    agents: { a: yaml },
    scripts: { one: script(), two: script() },
    pricing: {
      'script:one': { input: 1e6, output: 1e6 },
      'script:two': { input: 1e6, output: 1e6 },
    },
    ...more,
  })
  onTestFinished(() => engine.close())
  const { runtime, store } = engine
  const metrics = createRunMetrics(store)
  await metrics.read()
  const run = await runtime.start('a', {
    messages: [{ role: 'user', content: 'Hi' }],
  })
  await run.result
  const entries = await entriesOf(store, run.id)
  const at = entries.find(({ type, step }) => type === 'step-finish' && step === 'main/one')!.seq
  const fork = await runtime.fork(run.id, { at })
  await fork.result
  // A fork of the fork shares one call of the source and one of the fork.
  const second = await runtime.fork(fork.id, {
    at: (await entriesOf(store, fork.id)).length,
  })
  await second.result
  return { engine, store, metrics, run, fork, second }
}

describe.each(Object.keys(stores))('%s', (name) => {
  test('threads count what is their own; the row of a fork has all that it says', async () => {
    const { engine, store, run, fork, second, metrics } = await forked(stores[name]!)
    expect((await store.runs.get(fork.id))!.usage).toMatchObject({
      totalTokens: 30,
    })
    const handler = createHandler({
      runtime: engine.runtime,
      authorize: () => true,
    })
    const { threads } = (await (await handler(new Request('http://x/api/threads'))).json()) as {
      threads: { id: string; usage: object; cost?: number }[]
    }
    const found = Object.fromEntries(threads.map(({ id, usage, cost }) => [id, { ...usage, cost }]))
    expect(found[run.threadId]).toEqual({
      inputTokens: 20,
      outputTokens: 10,
      totalTokens: 30,
      cost: 30,
    })
    expect(found[fork.threadId]).toEqual({
      inputTokens: 10,
      outputTokens: 5,
      totalTokens: 15,
      cost: 15,
    })
    expect(found[second.threadId]).toMatchObject({ totalTokens: 0 })
    expect(await metrics.read()).toContain('millrace_tokens_total{model="script:one",kind="input"} 10\n')
  })
})

/** Between the run and its fork: what counts from the start of its source has this in it. */
const later = 20_000_000

describe.each(Object.keys(stores))('%s', (name) => {
  test('the times of a fork count from when it was forked: in lists, comparisons, statistics and metrics', async () => {
    const { wrapStore = (store) => store } = stores[name]!
    let passed = 0
    const script = () =>
      createScriptedModel([
        [text('Hi'), finish()],
        [text('Ho'), finish()],
      ])
    const engine = openEngine({
      agents: { a: yaml },
      scripts: { one: script(), two: script() },
      wrapStore: (store) => ({ ...wrapStore(store), now: () => Date.now() + passed }),
    })
    const { runtime, store } = engine
    const metrics = createRunMetrics(store)
    await metrics.read()
    const run = await runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] })
    await run.result
    const at = (await entriesOf(store, run.id)).find(({ type, step }) => type === 'step-finish' && step === 'main/one')!
    passed = later
    const fork = await runtime.fork(run.id, { at: at.seq })
    await fork.result

    const row = (await store.runs.get(fork.id))!
    expect(row.startedAt - (await store.runs.get(run.id))!.startedAt).toBeGreaterThanOrEqual(later)
    const handler = createHandler({ runtime, authorize: () => true })
    const get = async (path: string) => (await (await handler(new Request(`http://x${path}`))).json()) as never
    const { startedAt, endedAt } = (await get(`/api/runs/${fork.id}`)) as Record<string, number>
    expect([startedAt, endedAt]).toEqual([row.startedAt, row.endedAt])
    const until = Date.now() + 2 * later
    const stats = (await get(`/api/stats?since=0&until=${until}`)) as { duration: object }
    const diff = (await get(`/api/diff?a=${run.id}&b=${fork.id}`)) as { b: { duration: number } }
    const { threads } = (await get('/api/threads')) as { threads: { id: string; firstTokenMs: { last: number } }[] }
    const all = [row.firstTokenMs!, row.endedAt! - row.startedAt, diff.b.duration, ...Object.values(stats.duration)]
    all.push(
      threads.find(({ id }) => id === fork.threadId)!.firstTokenMs.last,
      summaryOf((await viewOf(store, fork.id))!).duration,
    )
    expect(all.filter((ms) => !(ms < later))).toEqual(['all'])
    const told = await metrics.read()
    expect(told).toContain('millrace_run_duration_seconds_count{agent="a"} 2\n')
    expect(Number(/^millrace_run_duration_seconds_sum\{agent="a"\} (.+)$/mu.exec(told)![1])).toBeLessThan(later / 1000)
    expect(told).toContain('millrace_runs_ended_total{agent="a",outcome="completed"} 2\n')
    expect(told).not.toContain('agent="other"')
    if (store.records === undefined) return
    const { sql } = namedQueries['executions']!
    const executions = await store.records.query(sql, { parameters: { days: 1 } })
    const ms = executions.rows.map((each) => each[executions.columns.indexOf('ms')])
    expect(ms.filter((each) => !(Number(each) < later))).toEqual([])
  })
})

test('stats and named queries count it once; the tables say what is shared', async () => {
  const { engine, store, fork, second } = await forked({})
  const records = store.records!
  const handler = createHandler({
    runtime: engine.runtime,
    authorize: () => true,
  })
  expect(await (await handler(new Request('http://x/api/stats'))).json()).toMatchObject({
    usage: { reports: 3, inputTokens: 30, knownCost: 45 },
    usageByModel: [
      { name: 'script:two', reports: 2 },
      { name: 'script:one', reports: 1 },
    ],
    modelCalls: [{ count: 2 }, { count: 1 }],
    outcomes: [{ name: 'completed', count: 3 }],
  })
  const { sql } = namedQueries['cost-by-agent']!
  expect((await records.query(sql, { parameters: { days: 30 } })).rows[0]!.slice(0, 5)).toEqual(['a', 2, 30, 15, 45])
  const rows = async (query: string) => (await records.query(query)).rows
  expect(await rows(`SELECT shared, count(*) FROM usage WHERE run = '${fork.id}' GROUP BY 1`)).toEqual([
    [0, 1],
    [1, 1],
  ])
  expect(await rows(`SELECT shared, count(*) FROM usage WHERE run = '${second.id}' GROUP BY 1`)).toEqual([[1, 2]])
  expect(await rows(`SELECT model_calls, total_tokens FROM threads WHERE last_run = '${fork.id}'`)).toEqual([[1, 15]])
  // Nothing of the fork is missing.
  expect(await rows(`SELECT count(*) FROM agents WHERE id = '${fork.id}'`)).toEqual([[1]])
  expect(await rows(`SELECT event_type FROM agent_stream_events WHERE id = '${fork.id}:1'`)).toEqual([['run-start']])
})
