/** Ten thousand conversations are listed at once: one query, which looks at the threads of the page and no others. */
import { mkdtempSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Store } from '../../part/log.ts'
import { threadStatuses, type ThreadQuery } from '../../part/thread.ts'
import { sqliteStore } from '../../store/sqlite/store.ts'
import { queryThreads, threadsQuery } from './query-threads.ts'

const dir = mkdtempSync(join(tmpdir(), 'millrace-'))
const file = join(dir, 'millrace.db')
let store: Store
let db: DatabaseSync

/**
 * 10,000 threads of three runs each, the newest of which are the newest runs. Every hundredth thread waits, every thousandth is active. Ten users of two
 * tenants and of none have them, but for the oldest thousand, which are Ann's.
 */
beforeAll(async () => {
  await sqliteStore(file).close()
  db = new DatabaseSync(file)
  db.exec(`
    BEGIN;
    WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 29999)
    INSERT INTO runs (number, id, agent, thread_id, protocol, status, started_at, updated_at, ended_at, first_token_ms, last_seq, epoch,
      usage, cost, title, owner, tenant)
    SELECT i + 1, 'run_' || i, 'agent' || (i % 7), 'thread_' || (i % 10000), 'ui',
      CASE WHEN i % 1000 = 999 THEN 'running' WHEN i % 100 = 99 THEN 'suspended' ELSE 'completed' END, i * 1000, i * 1000 + 500,
      CASE WHEN i % 100 <> 99 THEN i * 1000 + 500 END, 100, 40, 0,
      '{"inputTokens":10,"outputTokens":5,"totalTokens":15,"source":"reported"}', 0.01, 'Question ' || i,
      CASE WHEN i % 10000 < 1000 THEN 'ann' ELSE 'user' || (i % 10) END, CASE WHEN i % 3 <> 2 THEN 'tenant' || (i % 2) ELSE '' END FROM n;
    INSERT INTO views (run, seq, view) SELECT number, 40, json_object('version', 2, 'asked',
      json_array(json_object('role', 'user', 'content', title)), 'messages',
      json_array(json_object('role', 'assistant', 'content', replace(hex(zeroblob(100)), '0', 'word ')))) FROM runs;
    INSERT INTO indexed_threads (id, last_run, updated_at)
      SELECT thread_id, max(number), max(updated_at) FROM runs GROUP BY thread_id;
    INSERT INTO indexed_model_calls (run, seq, stage, model) SELECT number, 3, 'main', 'model' || (number % 3) FROM runs;
    COMMIT`)
  store = sqliteStore(file)
})
afterAll(async () => {
  db.close()
  await store.close()
  rmSync(dir, { recursive: true, force: true })
})

const rule = { closeAfterMs: 5_000_000, now: 30_000_000 }

const queries: [string, ThreadQuery][] = [
  ['the newest', {}],
  ['a page in the middle', { before: 'thread_5000' }],
  ['those of an agent', { agent: 'agent3' }],
  ...threadStatuses
    .filter((status) => status !== 'active')
    .map((status): [string, ThreadQuery] => [status, { status }]),
  ['those of a user, older than those of others', { owner: 'ann', tenant: 'tenant1' }],
  ['those of a user without a tenant', { owner: 'ann', tenant: '' }],
  ['those of a tenant', { tenant: 'tenant1' }],
  ['those of a user with an agent', { owner: 'ann', tenant: 'tenant1', agent: 'agent3' }],
  ['the idle ones of a user', { owner: 'ann', tenant: 'tenant1', status: 'closed' }],
]

describe('queryThreads', () => {
  test.each(queries)('%s: a page of 50, and no row of another thread is read for its counts', async (_, query) => {
    expect(await queryThreads(store.records!, query, rule)).toHaveLength(50)
    const { sql, parameters } = threadsQuery(query, rule)
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(parameters)
    const details = plan.map(({ detail }) => String(detail))
    // The runs themselves are walked from the newest on until the page is full; everything else is looked up.
    expect(details.filter((detail) => /^SCAN (?!r$|p$|c$|\(subquery)/u.test(detail))).toEqual([])
    if (query.tenant === undefined) return
    const sorts = (all: readonly string[]) => all.filter((detail) => detail === 'USE TEMP B-TREE FOR ORDER BY').length
    const unsorted = db.prepare(`EXPLAIN QUERY PLAN ${threadsQuery({}, rule).sql}`).all({ limit: 50 })
    expect(sorts(details)).toBe(sorts(unsorted.map(({ detail }) => String(detail))))
    expect(details.filter((detail) => /runs_by_(?:owner|tenant)/u.test(detail))).toEqual([
      expect.stringMatching(
        /^SEARCH r USING (?:COVERING )?INDEX runs_by_(?:owner \(owner=\? AND )?(?:tenant \()?tenant=\?/u,
      ),
    ])
  })

  test('the counts are those of the rows', async () => {
    const [row] = await queryThreads(store.records!, { limit: 1 }, rule)
    expect(row).toEqual({
      id: 'thread_9999',
      status: 'active',
      title: 'Question 9999',
      agents: ['agent4', 'agent0', 'agent3'],
      lastRunId: 'run_29999',
      startedAt: 9_999_000,
      updatedAt: 29_999_500,
      runCount: 3,
      messageCount: 6,
      models: ['model0', 'model1', 'model2'],
      tools: [],
      toolCallCount: 0,
      errorCount: 0,
      usage: { inputTokens: 30, outputTokens: 15, totalTokens: 45 },
      cost: expect.closeTo(0.03) as number,
      firstTokenMs: { average: 100, last: 100 },
    })
  })

  test.each([
    ['was not kept', 9998, 'DELETE FROM views WHERE run = 29999'],
    ['was kept before its end', 9997, 'UPDATE views SET seq = 39 WHERE run = 29998'],
    ['was kept by an older version', 9995, `UPDATE views SET view = json_set(view, '$.version', 1) WHERE run = 29996`],
  ])('messages of a thread are not counted if the view of a run %s', async (_, thread, change) => {
    db.exec(change)
    const rows = await queryThreads(store.records!, { limit: 5 }, rule)
    const { messageCount, firstTokenMs } = rows.find(({ id }) => id === `thread_${thread}`)!
    expect([messageCount, firstTokenMs]).toEqual([undefined, { average: 100, last: 100 }])
    expect(rows.find(({ id }) => id === 'thread_9996')?.messageCount).toBe(6)
  })
})
