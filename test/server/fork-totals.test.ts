/** What a fork shares with its source is counted once in totals over runs: in stats, threads, metrics and named queries. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHandler } from '../../src/server/handler.ts'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import { createRunMetrics } from '../../src/record/metrics/run-metrics.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { namedQueries } from '../../src/store/tables/named-queries.ts'
import { createEngine, entriesOf, type EngineOptions } from '../support/engine.ts'

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
