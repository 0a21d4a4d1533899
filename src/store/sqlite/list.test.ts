/** Lists of many runs: every query selects what a look at each row selects. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runSorts, type RunQuery, type RunRow, type Store } from '../../part/log.ts'
import { noon, startEntry } from '../example-run.contract.ts'
import { listRows } from '../run-query.ts'
import { removeRunRows } from '../tables/remove-run.ts'
import { openDatabase } from './schema.ts'
import { sqliteStore } from './store.ts'

const agents = ['one', 'two', 'rare']
const outcomes = ['completed', 'failed', 'aborted'] as const
const words = ['Whale', 'river', 'it_all', '100%', 'Über', '天气']

const folder = mkdtempSync(join(tmpdir(), 'millrace-list-'))
let store: Store
let rows: RunRow[]

beforeAll(async () => {
  store = sqliteStore(join(folder, 'list.db'))
  const random = (n: number, most: number) => (n * 7919 + (n % 13) * 31) % most
  const appends = Array.from({ length: 900 }, (_, n) => {
    // Some were recorded elsewhere before, and have come late.
    const time = noon + (n % 9 === 0 ? -1000 * n : 10 * n)
    const content = `${words[random(n, 6)]} ${words[random(n + 3, 6)]}`
    // Some belong to no one, and users of two tenants have the same ids.
    const user = n % 3 === 0 ? undefined : { id: `u${n % 4}`, ...(n % 5 > 1 && { tenant: `t${n % 2}` }) }
    const part = { agent: agents[n % 300 === 7 ? 2 : n % 2]!, threadId: `t${n % 40}`, ...(user && { user }) }
    const start = startEntry(
      `run-${n.toString(36)}`,
      { ...part, input: { messages: [{ role: 'user', content }] } },
      time,
    )
    const outcome = outcomes[random(n, 3)]!
    const usage = { source: 'reported', ...(n % 4 > 0 && { totalTokens: random(n, 90) }) } as const
    const used = { seq: 2, timestamp: time, step: 'main/a/1', type: 'usage', model: `m${n % 3}`, usage } as const
    const last = { seq: 3, timestamp: time + random(n, 70), step: '', type: 'run-end', outcome, usage } as const
    const end = { ...last, ...(n % 7 > 0 && { cost: random(n, 50) / 100 }) }
    return store.log.append(`run-${n.toString(36)}`, 1, n % 5 === 0 ? [start] : [start, used, end])
  })
  await Promise.all(appends)
  await store.records!.settle()
  // As if the last ones were not in the index yet.
  const db = openDatabase(join(folder, 'list.db'), { busyTimeout: 5000 })
  for (let n = 600; n < 900; n++) removeRunRows(db, `run-${n.toString(36)}`)
  db.close()
  rows = (await store.runs.list({ limit: 1000 })).toReversed()
})
afterAll(async () => {
  await store.close()
  rmSync(folder, { recursive: true })
})

const query = fc.record(
  {
    agent: fc.constantFrom(...agents),
    threadId: fc.constantFrom('t0', 't7', 'none'),
    owner: fc.constantFrom('', 'u1', 'u2', 'none'),
    tenant: fc.constantFrom('', 't0', 't1'),
    status: fc.oneof(fc.constantFrom(...outcomes, 'running'), fc.subarray([...outcomes, 'running'])),
    since: fc.constantFrom(noon - 1e6, noon, noon + 4000, noon + 8800, noon + 8990, noon + 1e6),
    until: fc.constantFrom(noon - 1e6, noon, noon + 4000, noon + 8990, noon + 1e6),
    model: fc.constantFrom('m0', 'm1', 'none'),
    protocol: fc.constantFrom('api', 'none'),
    minCost: fc.constantFrom(0, 0.25),
    maxCost: fc.constantFrom(0, 0.25),
    minMs: fc.constantFrom(0, 30),
    maxMs: fc.constantFrom(30, 60),
    sort: fc.constantFrom(...runSorts),
    order: fc.constantFrom('asc', 'desc'),
    idPrefix: fc.constantFrom('', 'run', 'run-1', 'run-a', 'none'),
    q: fc.constantFrom('', 'wha', '%', 'WHALE river', 't_a', 'nothing'),
    search: fc.constantFrom('', 'wha', 'river', 'ÜBER', '天气 river', '0', 'nothing'),
    before: fc.integer({ min: 0, max: 899 }).map((n) => `run-${n.toString(36)}`),
    limit: fc.constantFrom(1, 7, 50, 1000),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<RunQuery>

/** A run that the filter does not show is unknown as `before`. */
async function found(list: () => RunRow[] | Promise<RunRow[]>): Promise<string[] | string> {
  try {
    return (await list()).map(({ id }) => id)
  } catch (error) {
    return (error as Error).message
  }
}

test('any conditions select the runs that each of them selects, newest first', async () => {
  const check = fc.asyncProperty(query, async (asked) => {
    expect(await found(() => store.runs.list(asked))).toEqual(await found(() => listRows(rows, asked)))
  })
  await fc.assert(check, { numRuns: 300 })
})
