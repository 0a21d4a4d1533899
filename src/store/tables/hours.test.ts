/** Statistics with kept hours are those of the rows, whatever is recorded, continued, deleted, forked or filled again meanwhile. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { arbitraryNestedRun, arbitraryRun } from '../../../test/arbitrary-run.ts'
import { slowRun } from '../../../test/support/recorded.ts'
import type { Entry } from '../../part/entry.ts'
import type { Store } from '../../part/log.ts'
import type { RunUser } from '../../part/principal.ts'
import type { Percentiles, StatsQuery, Totals, UsageSum } from '../../part/stats.ts'
import { openDatabase } from '../sqlite/schema.ts'
import { sqliteStore } from '../sqlite/store.ts'
import { Facts, hourLength, percentilesOf, stepOf, valueOf } from './facts.ts'
import { keepHours } from './hours.ts'
import { createTotals } from './totals.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-hours-'))
afterAll(() => rmSync(root, { recursive: true }))
let count = 0

/** Long ago: all hours are closed. */
const began = Date.UTC(2026, 0, 1, 22)
const [since, until] = [began - 1, began + 8 * hourLength + 7]

const users: (RunUser | undefined)[] = [
  { id: 'ann' },
  { id: 'ann', tenant: 'acme' },
  { id: 'bob', tenant: 'acme' },
  undefined,
]
const filters: Partial<StatsQuery>[] = [
  { agent: 'assistant' },
  { owner: 'ann' },
  { owner: 'ann', tenant: '' },
  { tenant: 'acme' },
  { owner: '', agent: 'assistant' },
]

/** A run whose entries are so many ms apart. */
function spread(entries: readonly Entry[], run: string, from: number, ms: number, user?: RunUser): Entry[] {
  return entries.map((entry, i) => ({
    ...entry,
    timestamp: from + i * ms,
    ...(entry.type === 'run-start' && { runId: run, threadId: `thread of ${run}`, ...(user && { user }) }),
  }))
}

/** As an indexer that has read hours and keeps them. */
function keepAll(path: string): void {
  const db = openDatabase(path, { busyTimeout: 5000 })
  keepHours(db, createTotals(db).hours({ since, until, most: 100 }))
  db.close()
}

function totalsOf(path: string, filter: Partial<StatsQuery> = {}): Totals {
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    return createTotals(db).read({ since, until, ...filter, closed: Infinity }).totals
  } finally {
    db.close()
  }
}

/** From rows alone. */
function computed(path: string, filter: Partial<StatsQuery> = {}): Totals {
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    return createTotals(db).read({ since, until, ...filter, closed: 0 }).totals
  } finally {
    db.close()
  }
}

/** Without what kept times do not have, and sums of money as they are added in another order. */
function rough(totals: Totals): unknown {
  const isNear = (ms: number) => stepOf(ms)
  const ofTimes = ({ name, count, p50, p95, p99 }: Percentiles) => [name, count, ...[p50, p95, p99].map(isNear)]
  const ofUsage = <T extends UsageSum>(sum: T) => ({ ...sum, knownCost: sum.knownCost.toFixed(9) })
  const { duration, usage, modelCalls, firstToken, toolCalls, ...lists } = totals
  const sorted = Object.entries(lists).map(([name, rows]) => {
    const all = (rows as object[]).map((row) => JSON.stringify('knownCost' in row ? ofUsage(row as never) : row))
    return [name, all.sort()]
  })
  const times = [...(duration === null ? [] : [duration]), ...modelCalls, ...firstToken, ...toolCalls]
  return {
    lists: sorted,
    usage: usage && ofUsage(usage),
    times: times.map((each) => JSON.stringify(ofTimes(each))).sort(),
  }
}

type Change = typeof change extends fc.Arbitrary<infer T> ? T : never

const change = fc.oneof(
  fc.record({ kind: fc.constant('append' as const), run: fc.nat(3), count: fc.constantFrom(1, 4, 12, 500) }),
  fc.record({ kind: fc.constant('fork' as const), run: fc.nat(3), at: fc.integer({ min: 1, max: 8 }) }),
  fc.record({ kind: fc.constant('drop' as const), run: fc.nat(1) }),
  fc.constant({ kind: 'keep' as const }),
  fc.constant({ kind: 'compact' as const, run: 0 }),
)

async function apply(store: Store, path: string, done: { n: number }, runs: Entry[][], each: Change) {
  if (each.kind === 'keep') {
    await store.records!.settle()
    return keepAll(path)
  }
  const run = `run-${each.run}`
  const row = await store.runs.get(run)
  if (each.kind === 'append') {
    const entries = runs[each.run]!.slice(row?.lastSeq ?? 0, (row?.lastSeq ?? 0) + each.count)
    if (entries.length > 0) await store.log.append(run, 1, entries)
  } else if (row === undefined) return
  else if (each.kind === 'fork') {
    if (each.at <= row.lastSeq) await store.log.fork(run, each.at, `fork-${done.n++}`, began + done.n * 1_000_000)
  } else if (each.kind === 'drop') await store.upkeep!.drop(run, { rest: async () => keepAll(path) })
  else await store.upkeep!.compact(run)
}

test('whatever changes, kept hours add up to what the rows do', async () => {
  const runs = fc.array(
    fc.tuple(fc.oneof(arbitraryRun, arbitraryNestedRun), fc.nat(6 * hourLength), fc.constantFrom(1, 40_000, 700_000)),
    { minLength: 4, maxLength: 4 },
  )
  const check = fc.asyncProperty(runs, fc.array(change, { minLength: 4, maxLength: 24 }), async (made, changes) => {
    const path = join(root, `${count++}.db`)
    const store = sqliteStore(path)
    const entries = made.map(([run, from, ms], i) => spread(run, `run-${i}`, began + from, ms, users[i]))
    const done = { n: 0 }
    for (const each of changes) await apply(store, path, done, entries, each)
    await store.records!.settle()
    const expected = rough(computed(path))
    expect(rough(totalsOf(path))).toEqual(expected)
    keepAll(path)
    expect(rough(totalsOf(path))).toEqual(expected)
    for (const filter of filters) expect(rough(totalsOf(path, filter))).toEqual(rough(computed(path, filter)))
    await store.close()
  })
  await fc.assert(check, { numRuns: 30 })
}, 60_000)

test('what a run changes hours later, entry by entry, is in no kept hour', async () => {
  const path = join(root, `${count++}.db`)
  const store = sqliteStore(path)
  const runs = Array.from({ length: 28 }, (_, i) => slowRun(`slow-${i}`, began + 90 * 60_000))
  const late = (entry: Entry) => ({ ...entry, timestamp: entry.timestamp + 3 * hourLength })
  for (const [i, entries] of runs.entries()) await store.log.append(`slow-${i}`, 1, entries.slice(0, i + 1))
  await store.records!.settle()
  keepAll(path)
  for (const [i, entries] of runs.entries()) {
    await store.log.append(`slow-${i}`, 1, entries.slice(i + 1, i + 2).map(late))
    await store.records!.settle()
    expect(rough(totalsOf(path)), `after entry ${i + 1}`).toEqual(rough(computed(path)))
    keepAll(path)
  }
  await store.close()
})

test('a time of all years takes no longer than what happened in it', async () => {
  const path = join(root, `${count++}.db`)
  const store = sqliteStore(path)
  for (let i = 0; i < 5; i++) await store.log.append(`r${i}`, 1, slowRun(`r${i}`, began + (i + 2) * hourLength))
  await store.records!.settle()
  keepAll(path)
  const ever = { since: -8.64e15, until: 8.64e15 }
  expect(rough(totalsOf(path, ever))).toEqual(rough(totalsOf(path)))
  expect(rough(computed(path, ever))).toEqual(rough(computed(path)))
  expect(await store.records!.totals(ever)).toMatchObject({ usage: expect.anything() })
  await store.close()
})

test('a question keeps the closed hours that it has read; rows that were read before a change are not kept', async () => {
  const path = join(root, `${count++}.db`)
  const store = sqliteStore(path)
  const now = began + 90 * 60_000
  await store.log.append('slow', 1, slowRun('slow', now))
  await store.records!.settle()
  const { toolCalls } = await store.records!.totals({ since, until })
  expect(toolCalls).toMatchObject([{ name: 'find', p50: 6000 }, { name: 'quick' }])
  const kept = () => {
    const db = new DatabaseSync(path, { readOnly: true })
    const hours = db.prepare('SELECT count(*) AS hours, sum(kept) AS kept FROM indexed_hours').get()
    const agents = db.prepare('SELECT agent FROM indexed_hour_facts ORDER BY agent').all()
    db.close()
    return { ...hours, agents: agents.map(({ agent }) => agent) }
  }
  await expect.poll(kept, { timeout: 30_000 }).toEqual({ hours: 8, kept: 8, agents: ['assistant', 'helper'] })

  const db = openDatabase(path, { busyTimeout: 5000 })
  db.exec('UPDATE indexed_hours SET kept = 0')
  const read = createTotals(db).hours({ since, until, most: 100 })
  await store.log.append('slow', 1, [
    { seq: 30, timestamp: now, step: '', type: 'run-end', outcome: 'completed', usage: { source: 'reported' } },
  ])
  await store.records!.settle()
  keepHours(db, read)
  expect(kept()).toMatchObject({ hours: 8, kept: 7, agents: [] })
  db.close()
  // Nothing of a run that is deleted is in an hour.
  await store.upkeep!.drop('slow')
  expect(await store.records!.totals({ since, until })).toMatchObject({
    outcomes: [],
    usage: { reports: 0 },
    agents: [],
  })
  await store.close()
})

test('a percentile of kept times is off by at most 1 %', () => {
  const times = fc.array(fc.integer({ min: 0, max: 1e9 }), { minLength: 1, maxLength: 200 })
  fc.assert(
    fc.property(times, (values) => {
      const [exact, kept] = [new Facts(), new Facts()]
      exact.timesOf('run-took', 'all').values.push(...values)
      kept.addKept(exact.keep())
      const [a, b] = [exact, kept].map((facts) => percentilesOf('all', facts.timesOf('run-took', 'all')))
      expect(b!.count).toBe(a!.count)
      for (const name of ['p50', 'p95', 'p99'] as const) {
        expect(Math.abs(a![name] - b![name])).toBeLessThanOrEqual(Math.max(a![name] * 0.01, 0))
      }
    }),
  )
  for (let ms = 0; ms <= 50; ms++) expect(valueOf(stepOf(ms))).toBe(ms)
})
