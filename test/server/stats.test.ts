/** `GET /api/stats`: totals and percentiles over many runs. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHandler } from '../../src/server/handler.ts'
import { createScriptedModel, finish, text, throws, toolCall } from '../../src/models/testing/scripted-model.ts'
import { readStats, type Stats } from '../../src/record/stats.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { agent, createEngine } from '../support/engine.ts'

const messages = [{ role: 'user' as const, content: 'canary-7f3a' }]

describe('statistics', () => {
  test('outcomes, errors, usage with what has no price, and percentiles by model and tool', async () => {
    const good = [
      [toolCall('c', 'look', {}), finish('tool-calls')],
      [text('Done'), finish()],
    ]
    const engine = createEngine({
      agents: { a: agent('tools: [look]'), b: agent().replace('script:m', 'script:x') },
      scripts: {
        m: createScriptedModel([...good, ...good, [throws(new Error('busy'))]]),
        x: createScriptedModel([[text('Done'), finish()]]),
      },
      tools: { look: { parameters: { type: 'object' }, execute: () => 'canary-7f3a' } },
      pricing: { 'script:m': { input: 1e6, output: 1e6 } },
    })
    onTestFinished(() => engine.close())
    const handler = createHandler({ runtime: engine.runtime, authorize: () => true })
    const get = async (search = '') => {
      const response = await handler(new Request(`http://x/api/stats${search}`))
      const body = await response.text()
      expect(body).not.toContain('canary')
      const found = JSON.parse(body) as { usageByModel?: { name: string }[] }
      return { status: response.status, ...found }
    }
    for (const id of ['a', 'a', 'a', 'b']) await (await engine.runtime.start(id, { messages })).result
    const all = await get()
    expect(all).toMatchObject({
      status: 200,
      outcomes: [
        { name: 'completed', count: 3 },
        { name: 'failed', count: 1 },
      ],
      errors: [{ count: 1 }],
      agents: [
        { name: 'a', count: 3 },
        { name: 'b', count: 1 },
      ],
      duration: { count: 4, p50: expect.any(Number), p99: expect.any(Number) },
      toolCalls: [{ name: 'look', count: 2 }],
    })
    const models = Object.fromEntries(all.usageByModel!.map((row) => [row.name, row]))
    expect(models['script:x']).toMatchObject({ knownCost: 0, unpriced: 1, inputTokens: 10 })
    expect(models['script:m']).toMatchObject({ unpriced: 0 })
    expect(await get('?agent=b')).toMatchObject({ outcomes: [{ name: 'completed', count: 1 }], toolCalls: [] })
    expect(await get('?since=2000-01-01&until=2000-02-01')).toMatchObject({ outcomes: [], duration: null })
    expect(await get('?since=soon')).toMatchObject({
      status: 400,
      error: { message: expect.stringContaining('since must be') },
    })

    // A store without tables says the same of the same runs.
    const { log, runs } = engine.store
    const query = { since: Date.now() - 3_600_000, until: Date.now() + 1, agent: undefined }
    const stats = await readStats(engine.store, query)
    expect(stats.usageByThread).toHaveLength(4)
    expect(stats.usageByDay[0]).toMatchObject({ name: new Date().toISOString().slice(0, 10), calls: 6, unpriced: 1 })
    expect(stats.firstToken.length).toBeGreaterThan(0)
    const added = await readStats({ log, runs }, query)
    expect(comparable(added)).toEqual(comparable({ ...stats, firstToken: [] }))
    expect(added.duration).toEqual(stats.duration)
    expect(await readStats({ log, runs }, { ...query, since: 0, until: query.since })).toMatchObject({ outcomes: [] })
    expect(await readStats({ log, runs }, { ...query, agent: 'b' })).toMatchObject({
      agents: [{ name: 'b', count: 1 }],
      toolCalls: [],
    })
    expect(await readStats({ log, runs }, { ...query, since: query.until })).toMatchObject({
      outcomes: [],
      duration: null,
    })
  })

  /** Lists by name; the duration of a call is measured at two places. */
  function comparable(stats: Stats): unknown {
    return JSON.parse(
      JSON.stringify(stats, (key, value: unknown) => {
        if (/^p\d\d$/u.test(key)) return typeof value
        return Array.isArray(value)
          ? value.toSorted((a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1))
          : value
      }),
    )
  }

  test('a server that keeps runs in memory adds up those that it has', async () => {
    const engine = createEngine({
      agents: { a: agent() },
      scripts: { m: createScriptedModel([[text('Done'), finish()]]) },
      wrapStore: (store) => {
        void store.close()
        return memoryStore()
      },
    })
    onTestFinished(() => engine.close())
    await (
      await engine.runtime.start('a', { messages })
    ).result
    const response = await createHandler({ runtime: engine.runtime, authorize: () => true })(
      new Request('http://x/api/stats'),
    )
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({
      outcomes: [{ name: 'completed', count: 1 }],
      usage: { calls: 1, knownCost: 0, unpriced: 1 },
    })
  })

  test('a thousand runs are counted', async () => {
    const engine = createEngine({
      agents: { a: agent('tools: [look]') },
      scripts: {
        m: createScriptedModel([
          [toolCall('c', 'look', {}), finish('tool-calls')],
          [text('Done'), finish()],
        ]),
      },
      tools: { look: { parameters: { type: 'object' }, execute: () => 'seen' } },
    })
    onTestFinished(() => engine.close())
    await (
      await engine.runtime.start('a', { messages })
    ).result
    const query = { since: 0, until: Date.now() + 1000 }
    const one = await readStats(engine.store, query)
    multiply(join(engine.dir, 'millrace.db'), 1000)
    const all = await readStats(engine.store, query)
    expect(all.outcomes).toEqual([{ name: 'completed', count: 1000 }])
    expect(all.toolCalls).toMatchObject([{ name: 'look', count: 1000 }])
    expect(all.modelCalls).toMatchObject([{ count: 1000 * one.modelCalls[0]!.count }])
    expect(all.usage!.inputTokens).toBe(1000 * one.usage!.inputTokens!)
    expect(all.usageByThread).toHaveLength(1000)
  })
})

/** Copies the rows of the only run, until there are so many runs. */
function multiply(file: string, runs: number): void {
  const db = new DatabaseSync(file)
  const tables = ['runs', 'agents', 'steps', 'model_calls', 'tool_calls', 'usage']
  db.exec('BEGIN')
  for (const table of tables.map((name) => (name === 'runs' ? name : `indexed_${name}`))) {
    const columns = db
      .prepare(`SELECT name FROM pragma_table_info('${table}')`)
      .all()
      .map(({ name }) => String(name))
    const values = columns.map((name) => {
      if (['number', 'run', 'agent'].includes(name) && !(table === 'runs' && name === 'agent')) {
        return table === 'indexed_agents' && name === 'agent' ? name : `${name} + k * 1000`
      }
      return ['id', 'run_id', 'thread_id', 'execution_id'].includes(name) ? `${name} || k` : name
    })
    db.exec(`WITH RECURSIVE n(k) AS (VALUES (1) UNION ALL SELECT k + 1 FROM n WHERE k < ${runs - 1})
      INSERT INTO ${table} (${columns.join(', ')}) SELECT ${values.join(', ')} FROM ${table}, n`)
  }
  db.exec('COMMIT')
  db.close()
}
