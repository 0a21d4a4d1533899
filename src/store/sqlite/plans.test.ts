/** How SQLite finds the rows of every statement of the store: in a run, a conversation or a file of any size, each costs the same. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { recordAll } from '../../../test/support/recorded.ts'
import type { Entry } from '../../part/entry.ts'
import type { RunQuery } from '../../part/log.ts'
import { auditRow } from '../contract/ledger.contract.ts'
import { testRow } from '../contract/test-results.contract.ts'
import { exampleRun, startEntry } from '../example-run.contract.ts'
import { createRunList } from '../tables/run-search.ts'
import { createSearch } from '../tables/search.ts'
import { hourLength } from '../tables/facts.ts'
import { keepHours } from '../tables/hours.ts'
import { createTotals } from '../tables/totals.ts'
import { createRunTable } from './runs.ts'
import { sqliteStore } from './store.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-plans-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Notes every statement that is prepared meanwhile, and by which line of which file. */
async function preparedBy(work: () => Promise<void>): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const { prepare } = DatabaseSync.prototype
  DatabaseSync.prototype.prepare = function (...given) {
    const lines = new Error().stack!.split('\n')
    const line = lines.find((each) => each.includes('/src/store/') && !each.includes('.test.ts')) ?? ''
    found.set(`${/src\/store\/(.*?:\d+)/u.exec(line)?.[1]}\n${given[0]}`, given[0])
    return prepare.apply(this, given)
  }
  try {
    await work()
  } finally {
    DatabaseSync.prototype.prepare = prepare
  }
  return found
}

/** The lines of the source that prepare a statement, but for those that only open or migrate a file. */
function preparing(): string[] {
  const root = join(import.meta.dirname, '..')
  const files = ['sqlite/', 'tables/'].flatMap((dir) => readdirSync(join(root, dir)).map((name) => `${dir}${name}`))
  return files
    .filter(
      (file) => file.endsWith('.ts') && !/\.test\.ts$|-thread\.ts$|sqlite\/(?:migrate|foreign|read-only)/u.test(file),
    )
    .flatMap((file) => {
      const lines = readFileSync(join(root, file), 'utf8').split('\n')
      return lines.flatMap((line, i) => (/\.prepare\(/u.test(line) ? `${file}:${i + 1}` : []))
    })
}

/** Does everything that the store can do. */
async function doEverything(path: string): Promise<void> {
  const store = sqliteStore(path)
  const { log, runs, records, upkeep } = store
  await recordAll(store)
  for (const run of ['old', 'kept']) await log.append(run, 1, exampleRun(run, 300))
  // More than a list looks at one by one.
  const user = { id: 'ann', tenant: 'acme' }
  await Promise.all(
    Array.from({ length: 501 }, (_, i) =>
      log.append(`many-${i}`, 1, [startEntry(`many-${i}`, { threadId: 'many', user })]),
    ),
  )
  await log.fork('old', 8, 'fork')
  await records!.settle()
  const some: RunQuery[] = [
    { agent: 'echo' },
    { threadId: 'thread-1' },
    { status: 'completed' },
    { status: ['completed', 'failed'] },
    { status: ['completed', 'failed'], agent: 'echo' },
    { since: Date.now() - 1000 },
    { since: Date.now() - 1000, status: ['completed', 'failed'] },
    { since: 1 },
    { since: 1, until: Date.now() },
    { until: Date.now(), agent: 'echo' },
    { model: 'm', protocol: 'api', minCost: 1, maxCost: 2, minMs: 1, maxMs: 2 },
    { sort: 'cost', agent: 'echo', before: 'old' },
    { idPrefix: 'random-1' },
    { idPrefix: 'many' },
    { before: 'old' },
    ...[{ owner: 'ann' }, { tenant: 'acme' }, { owner: 'ann', tenant: 'acme' }].flatMap((filter) => [
      filter,
      { ...filter, agent: 'echo' },
      { ...filter, threadId: 'thread-1' },
      { ...filter, status: ['completed', 'failed'] as const },
      { ...filter, since: 1 },
    ]),
  ]
  for (const query of [{}, ...some, { q: 'a b' }, { search: 'whale' }]) await runs.list(query)
  await runs.due(Date.now())
  await records!.search({ q: '"blue whale" wh*' })
  // What threads do, done here.
  const db = new DatabaseSync(path, { readOnly: true })
  const listRuns = createRunList(db, createRunTable(db))
  for (const query of some) listRuns(query)
  for (const query of some) listRuns({ ...query, search: 'whale' })
  createSearch(db)({ q: 'whale', agent: 'assistant', threadId: 'thread-slow' })
  const totals = createTotals(db)
  const all = { since: 0, until: Date.now() }
  const read = totals.hours({ ...all, since: Date.now() - 8 * hourLength, most: 2 })
  totals.read({ ...all, closed: 0 })
  db.close()
  const writer = new DatabaseSync(path)
  keepHours(writer, read)
  writer.close()
  await records!.streamEvents('slow', { types: ['tool-call'] })
  await records!.isBehind()
  await log.post('slow', 'key', {})
  for await (const _ of log.inbox('slow')) break
  for await (const _ of log.changes()) break
  await log.position()
  await log.claim('slow', 1)
  await runs.keepView('slow', 1, {})
  await runs.view('slow')
  await store.ledger!.add('b', [{ key: 'k', amount: 1, until: Date.now() }], {
    key: 'r',
    position: 1,
    until: Date.now(),
  })
  await store.ledger!.read('b', ['k'])
  await store.audit!.add(auditRow())
  await store.audit!.list()
  await store.audit!.list({ tenant: 'acme', principal: 'u1' })
  await store.audit!.prune(0)
  await store.testResults!.add(testRow())
  await store.testResults!.of('a/b')
  await store.testResults!.forget('a/b')
  await upkeep!.size()
  await upkeep!.marks(['slow'])
  await upkeep!.generation!()
  await upkeep!.uncompacted(Infinity, 100)
  await upkeep!.compact('old')
  await upkeep!.expired(Infinity)
  // Deleted only in part: its rows are filled again.
  const stop = async () => Promise.reject(new Error('stop'))
  await upkeep!.drop('kept', { rest: stop }).catch(() => undefined)
  await log.append('last', 1, exampleRun('last').map(ofThread('alone')))
  await upkeep!.drop('last')
  await upkeep!.vacuum()
  await upkeep!.erase!()
  await records!.reindex()
  await store.close()
}

const ofThread = (threadId: string) => (entry: Entry) => (entry.type === 'run-start' ? { ...entry, threadId } : entry)

/** Finds one row, or a range that the statement wants all of. */
const direct = /^SEARCH .*\((?:rowid[=<>]\?|id=\?|(\w+)>\? AND \1<\?|\w+=\? AND .*)\)(?: LEFT-JOIN)?$/u

/** What else a statement may do, and why it costs no more in a larger store, or has to. The first words of statements, and their plans. */
const others: readonly (readonly [statement: RegExp, plan: RegExp, why: string])[] = [
  [/./u, /^SCAN (?:index_state|dropped)$/u, 'has one row; those of runs that are being deleted'],
  [/./u, /^SEARCH (?:ticks|runs|indexed_hours|feedback|test_results)$/u, 'the highest number'],
  [/LIMIT 1$|EXISTS \(SELECT 1 FROM index_queue\)/u, /^SCAN (?:index_queue|indexed_later)$/u, 'the first row'],
  [/./u, /^SEARCH (?:forks|f|index_queue) USING PRIMARY KEY \(run=\?\)(?: LEFT-JOIN)?$/u, 'the run is the whole key'],
  [/^DELETE FROM (?:ledger|audit)/u, /(?:until|time)<\?\)$/u, 'at most a thousand rows that are too old'],
  [/^INSERT INTO inbox/u, /^SEARCH inbox USING PRIMARY KEY \(run=\?\)$/u, 'the highest number of a run'],
  [/ORDER BY first_seq LIMIT 1$/u, /^SEARCH tick_groups USING PRIMARY KEY \(run=\?\)$/u, 'the first group of a run'],
  [/FROM texts WHERE hash = \?$/u, /sqlite_autoindex_texts_1 \(hash=\?\)$/u, 'the hash is unique'],
  [/^SELECT text FROM text_uses/u, /^SEARCH text_uses USING PRIMARY KEY \(run=\?\)$/u, 'some rows of a run, whichever'],
  [/^SELECT thread_id|^SELECT number, id, r/u, /forks_by_source \(source=\?\)$/u, 'whether there is one'],
  [/^SELECT number, id, r/u, /^SEARCH g USING PRIMARY KEY \(run=\?\)$/u, 'at most a thousand rows are measured'],
  [/^SELECT number, updated_at FROM runs/u, /runs_by_thread \(thread_id=\?\)$/u, 'the last run of a thread but one'],
  [/NOT EXISTS \(SELECT 1 FROM runs/u, /runs_by_thread\w* \(thread_id=\?\)$/u, 'whether there is one'],
  [/^WITH RECURSIVE branch/u, /forks_by_source \(source=\?\)$/u, 'all forks of a run'],
  [/^WITH RECURSIVE branch/u, /^USE TEMP B-TREE FOR DISTINCT$/u, 'all forks of a run'],
  [/^DELETE FROM \w+ WHERE run = \?1? AND seq IN/u, /\(run=\?\)$/u, 'some rows of a run, whichever'],
  [
    /test_results (?:WHERE|VALUES|SET)|test_results\n/u,
    /\(test=\?|rowid<\?/u,
    'the last results of one case, and those that are too old',
  ],
  [/^SELECT min\(at\) FROM/u, /(?:>\?\)|\(subquery-\d\))$/u, 'the first row of each index behind a time'],
  [/^SELECT \* FROM feedback WHERE run/u, /\(run=\?\)$|^USE TEMP B-TREE/u, 'what people say of one run'],
  [/^DELETE FROM (?:indexed_\w+|search|inbox|feedback) WHERE/u, /\(run=\?\)$/u, 'what is left of a run'],
  [/thread_titles/u, /^SEARCH thread_titles USING PRIMARY KEY \(thread=\?\)$/u, 'the thread is the whole key'],
  [/^SELECT 1 FROM runs WHERE thread_id/u, /runs_by_thread\w* \(thread_id=\?\)$/u, 'whether there is one'],
  [/^SELECT step FROM indexed_agents/u, /indexed_agents_by_run \(run=\?\)$/u, 'all agents of a run, once for a list'],
  [/^UPDATE indexed_blocks .* last_seq IS NULL$/u, /indexed_blocks_open \(run=\?\)$/u, 'the open texts of a fork'],
  [
    /^SELECT count\(\*\) AS calls/u,
    /indexed_model_calls_waiting \(run=\?\)$/u,
    'the model calls without a first token',
  ],
  [/^SELECT id, due_at FROM runs/u, /runs_by_due \(due_at<\?\)$/u, 'the runs that are due'],
  [/^SELECT id FROM runs WHERE status/u, /runs_by_status \(status=\?\)$/u, 'the runs that have not ended'],
  [/^SELECT id FROM runs WHERE status/u, /^SEARCH inbox .* \(run=\?\)$/u, 'the inbox of each run that waits'],
  [
    /^SELECT \* FROM runs WHERE (?:\+agent = \? AND )?\w+ = \?/u,
    /runs_by_\w+ \(\w+=\?\)$/u,
    'a list, in the order of the index, up to its limit',
  ],
  [
    /^SELECT \* FROM runs (?:ORDER|WHERE number)/u,
    /^SCAN runs$/u,
    'a list, in the order of the table, up to its limit',
  ],
  [
    /^SELECT \* FROM runs WHERE (?:\+started|\+id|\+status|\+owner)/u,
    /^SCAN runs$/u,
    'many fit, so that the limit is near',
  ],
  [/^SELECT \* FROM runs WHERE \+protocol/u, /^SCAN runs$/u, 'looked at one by one, in a thread'],
  [
    /number IN \(SELECT number FROM runs/u,
    /runs_by_owner \(owner=\?\)$/u,
    'all runs of a user of any tenant, to sort them',
  ],
  [/^DELETE FROM indexed_hour_facts/u, /\(hour=\?\)$/u, 'the rows of an hour'],
  [/^SELECT r.tenant/u, /runs_by_status \(status=\?\)$/u, 'the runs that have not ended'],
  [/^SELECT started_at AS at/u, /USING PRIMARY KEY \(run=\?\)$/u, 'all rows of a run that is removed'],
  [/LIMIT 501$/u, /runs_by_(?:start \(started_at>\?\)|(status|agent|owner|tenant) \(\1=\?\))$/u, 'up to its limit'],
  [/^SELECT id FROM runs WHERE ended_at IS NOT NULL AND number NOT IN/u, /^SCAN runs$/u, 'once for each vacuum'],
  [/^SELECT \(SELECT count/u, /^SCAN (?:runs|indexed_runs)/u, 'says how far a rebuild is, ten times a second'],
]

describe('query plans', () => {
  test('every statement finds its rows by a key or an index; exceptions are listed with their reason', async () => {
    const path = join(folder, 'plans.db')
    const found = await preparedBy(() => doEverything(path))
    const places = new Set([...found.keys()].map((key) => key.split('\n')[0]))
    expect(preparing().filter((place) => !places.has(place))).toEqual([])

    const db = new DatabaseSync(path)
    const used = new Set<unknown>()
    const bad: string[] = []
    // What migrations do once, and what is no query.
    const statements = [...found].filter(
      ([place, sql]) =>
        !/^sqlite\/(?:migrate|foreign|read-only)/u.test(place) &&
        /^\s*(?:SELECT|WITH|INSERT|REPLACE|UPDATE|DELETE)/u.test(sql),
    )
    for (const sql of new Set(statements.map(([, text]) => text.trim().replaceAll(/\s+/gu, ' ')))) {
      for (const { detail } of db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all()) {
        const plan = String(detail)
        // What was found before, and functions: no tables.
        if (
          !/^(?:SCAN|SEARCH|USE)/u.test(plan) ||
          direct.test(plan) ||
          /VIRTUAL TABLE|^SCAN (?:CONSTANT ROW|branch|[br]|\(.*|sqlite_master)$/u.test(plan)
        )
          continue
        const rule = others.find(([statement, allowed]) => statement.test(sql) && allowed.test(plan))
        if (rule === undefined) bad.push(`${sql}\n  ${plan}`)
        else used.add(rule)
      }
    }
    db.close()
    expect(bad).toEqual([])
    expect(others.filter((rule) => !used.has(rule))).toEqual([])
  })
})

test('words are looked for in a thread: this one prepares no statement for it', async () => {
  const store = sqliteStore(join(folder, 'thread.db'))
  await recordAll(store)
  const found = await preparedBy(async () => {
    expect(await store.runs.list({ search: 'whale', agent: 'assistant' })).toMatchObject([
      { id: 'child' },
      { id: 'slow' },
    ])
    expect(await store.runs.list({ q: 'hal' })).toHaveLength(2)
    expect(await store.records!.search({ q: 'whale', threadId: 'thread-slow' })).toHaveLength(4)
  })
  // Once it is seen whether the file can be opened beside its WAL.
  expect([...found.values()]).toEqual(['SELECT count(*) FROM sqlite_schema'])
  await store.close()
})
