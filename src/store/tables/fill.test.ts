import { DatabaseSync } from 'node:sqlite'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { arbitraryAgentRun, arbitraryNestedRun, arbitraryRun } from '../../../test/arbitrary-run.ts'
import { slowRun } from '../../../test/support/recorded.ts'
import { readView } from '../../fold/read-view.ts'
import { createRunFold } from '../../fold/run-fold.ts'
import { eventsOfLog } from '../stream-events.ts'
import type { Entry, RecordedPart } from '../../part/entry.ts'
import { cutAt, startEntry } from '../example-run.contract.ts'
import { sqliteStore } from '../sqlite/store.ts'
import { openDatabase } from '../sqlite/schema.ts'
import { createIndexer } from './indexer.ts'
import { refillRun, removeRunRows } from './remove-run.ts'
import { views } from './views.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-tables-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
let count = 0
const newFile = () => join(root, `${count++}.db`)

/** An indexer with these does nothing by itself. */
const byHand = { slice: 1, share: 1, pause: 1e9, calm: 0, look: 1e9, first: 1e9 }

/** What the tables hold, and which texts can be searched. */
function tablesOf(path: string): Record<string, string[]> {
  const db = new DatabaseSync(path, { readOnly: true })
  const names = [...views.map(([name]) => name), 'indexed_runs', '(SELECT run, seq, start, kind FROM indexed_texts)']
  const rows = names.map((name) => {
    const found = db.prepare(`SELECT * FROM ${name}`, { returnArrays: true }).all()
    return [name, found.map((row) => JSON.stringify(row)).sort()] as const
  })
  db.close()
  return Object.fromEntries(rows)
}

function rename(entries: readonly Entry[], run: string): Entry[] {
  return entries.map((entry) => (entry.type === 'run-start' ? { ...entry, runId: run } : entry))
}

test(
  'filled piece by piece while runs are recorded, the tables are what a rebuild makes of the log',
  { timeout: 180_000 },
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(arbitraryRun, arbitraryNestedRun, arbitraryAgentRun), {
          minLength: 1,
          maxLength: 3,
        }),
        fc.array(fc.nat(60), { maxLength: 6 }),
        fc.option(fc.nat(40), { nil: undefined }),
        fc.boolean(),
        fc.boolean(),
        async (runs, cuts, fork, compact, settled) => {
          const path = newFile()
          const store = sqliteStore(path)
          const batches = runs.map((entries, i) => cutAt(rename(entries, `run-${i}`), cuts))
          for (let n = 0; n < Math.max(...batches.map(({ length }) => length)); n++) {
            for (const [i, each] of batches.entries()) {
              const batch = each[n]
              if (batch !== undefined) await store.log.append(`run-${i}`, 1, batch)
            }
            if (n % 2 === 0 && (settled || n % 4 === 0)) await store.records!.settle()
          }
          if (fork !== undefined) await store.log.fork('run-0', Math.min(runs[0]!.length - 1, fork) + 1, 'fork')
          if (settled) await store.records!.settle()
          for (const i of compact ? runs.keys() : []) await store.upkeep!.compact(`run-${i}`)
          await store.records!.settle()
          const live = tablesOf(path)
          expect(live.agents!.length).toBeGreaterThanOrEqual(runs.length + (fork === undefined ? 0 : 1))
          await store.records!.reindex()
          expect(tablesOf(path)).toEqual(live)
          await store.close()
          rmSync(path, { force: true })
        },
      ),
      { numRuns: 15 },
    )
  },
)

test('every entry is one event, and the summaries of the agents are that of the run, whatever the run', async () => {
  const path = newFile()
  const store = sqliteStore(path)
  const runs = fc.sample(fc.oneof(arbitraryRun, arbitraryNestedRun), {
    numRuns: 40,
    seed: 7,
  })
  for (const [i, entries] of runs.entries()) await store.log.append(`run-${i}`, 1, rename(entries, `run-${i}`))
  await store.records!.settle()
  for (const [i, entries] of runs.entries()) {
    const { rows } = await store.records!.query(
      `SELECT e.id, e.event_type, e.timestamp FROM agent_stream_events e JOIN agents a ON a.id = e.agent_id WHERE a.run = :run`,
      { parameters: { run: `run-${i}` } },
    )
    const seqOf = (row: unknown[]) => Number(String(row[0]).split(':')[1])
    const wanted = rename(entries, `run-${i}`).map(({ seq, type, timestamp }) => [`run-${i}:${seq}`, type, timestamp])
    expect(rows.sort((a, b) => seqOf(a) - seqOf(b))).toEqual(wanted)
    const agents = await store.records!.query(`SELECT stream_summary FROM agents WHERE run = :run`, {
      parameters: { run: `run-${i}` },
    })
    const sum: Record<string, number> = {}
    for (const [summary] of agents.rows) {
      const counts = Object.entries(JSON.parse(String(summary)) as Record<string, number>)
      for (const [name, n] of counts) sum[name] = (sum[name] ?? 0) + n
    }
    const fold = createRunFold()
    for (const entry of entries) fold.apply(entry)
    expect(sum).toEqual(fold.view().summary)
  }
  await store.close()
})

test('the rows of a run can be removed, and filled again', async () => {
  const path = newFile()
  const store = sqliteStore(path)
  const runs = fc.sample(arbitraryRun, { numRuns: 4, seed: 3 })
  for (const [i, entries] of runs.entries()) await store.log.append(`run-${i}`, 1, rename(entries, `run-${i}`))
  await store.log.fork('run-1', runs[1]!.length - 1, 'fork')
  await store.records!.settle()
  const whole = tablesOf(path)

  const db = new DatabaseSync(path)
  db.exec('BEGIN IMMEDIATE')
  refillRun(db, 'run-1')
  db.exec('COMMIT')
  expect(JSON.stringify(tablesOf(path).agents)).not.toContain('run-1')
  await store.records!.settle()
  expect(tablesOf(path)).toEqual(whole)

  for (const run of ['run-0', 'run-1', 'run-2', 'run-3', 'fork']) {
    removeRunRows(db, run)
    db.prepare('DELETE FROM runs WHERE id = ?').run(run)
  }
  db.close()
  const left = Object.values(tablesOf(path)).flat()
  expect(left).toEqual([])
  expect(await store.records!.search({ q: 'hi' })).toEqual([])
  await store.close()
})

test('a slice whose time is over ends at the next entry, however long the tick is, and the tables are the same', async () => {
  const path = newFile()
  const store = sqliteStore(path)
  const [entries] = fc.sample(arbitraryNestedRun, { numRuns: 1, seed: 5 })
  await store.log.append('run', 1, rename(entries!, 'run'))
  for (let seq = 1; seq <= entries!.length; seq++) await store.log.fork('run', seq, `fork-${seq}`)
  await store.records!.settle()
  const whole = tablesOf(path)
  await store.close()
  const db = openDatabase(path, { busyTimeout: 1000 })
  let time = 0
  let slices = 0
  const indexer = createIndexer(db, undefined, undefined, { ...byHand, now: () => (time += 1), worked: () => slices++ })
  await indexer.rebuild()
  indexer.close()
  db.close()
  const written = entries!.filter(({ type }) => !type.endsWith('-delta')).length
  expect(slices).toBeGreaterThan(written)
  expect(tablesOf(path)).toEqual(whole)
})

test('the texts of a slice are written into the full-text index together, not each by itself', async () => {
  const path = newFile()
  const store = sqliteStore(path)
  // What a reset changes is several rows at once, which begins a statement transaction.
  const some = fc
    .sample(fc.oneof(arbitraryRun, arbitraryNestedRun), { numRuns: 60, seed: 11 })
    .filter((entries) => entries.every(({ type }) => type !== 'step-reset'))
  const runs = [slowRun('slow', 0), ...some, slowRun('slow', 0)]
  expect(runs.flat().map(({ type }) => type)).toEqual(
    expect.arrayContaining(['text-end', 'reasoning-end', 'tool-call', 'tool-result', 'prompt', 'usage']),
  )
  for (const [i, entries] of runs.entries()) await store.log.append(`run-${i}`, 1, rename(entries, `run-${i}`))
  await store.close()
  const db = openDatabase(path, { busyTimeout: 1000 })
  const indexer = createIndexer(db, undefined, undefined, { ...byHand, now: () => 0 })
  await indexer.rebuild()
  indexer.close()
  expect(Number(db.prepare('SELECT count(*) AS texts FROM indexed_texts').get()!.texts)).toBeGreaterThan(15)
  expect(db.prepare('SELECT count(DISTINCT segid) AS segments FROM search_idx').get()).toEqual({ segments: 1 })
  db.close()
})

test('an agent that a step runs ends with it, whether another process began the step, and runs again after a reset', async () => {
  const path = newFile()
  const start = { type: 'run-start', runId: 'run', agent: 'a', pipeline: '', threadId: 't', protocol: 'api' } as const
  const begin: RecordedPart = { type: 'step-start', stepType: 'call-agent', kind: 'container', agent: 'b', attempt: 1 }
  const error = { code: 'model-failed', message: 'no answer' }
  const parts: [step: string, part: RecordedPart][] = [
    ['', { ...start, input: { messages: [] } }],
    ['main/one', begin],
    ['main/one', { type: 'step-finish', duration: 1 }],
    ['main/two', begin],
    ['main/two', { type: 'step-finish', duration: 1, error }],
    ['main/three', begin],
    ['main/three', { type: 'step-reset', attempt: 1 }],
    ['main/three', { ...begin, attempt: 2 }],
    ['main/three', { type: 'step-finish', duration: 1 }],
    ['', { type: 'run-end', outcome: 'completed', usage: { source: 'reported' } }],
  ]
  const entries = parts.map(([step, part], i) => ({ seq: i + 1, timestamp: i + 1, step, ...part }) as Entry)
  for (const restarts of [false, true]) {
    let store = sqliteStore(path)
    for (const entry of entries) {
      await store.log.append('run', 1, [entry])
      if (!restarts) continue
      await store.records!.settle()
      await store.close()
      store = sqliteStore(path)
    }
    await store.records!.settle()
    const sql = `SELECT step, status, started_at, ended_at, error ->> 'code' AS code FROM agents WHERE step <> '' ORDER BY 1`
    expect((await store.records!.query(sql)).rows).toEqual([
      ['main/one', 'completed', 2, 3, null],
      ['main/three', 'completed', 6, 9, null],
      ['main/two', 'failed', 4, 5, 'model-failed'],
    ])
    await store.close()
    rmSync(path)
  }
})

test('an agent that has begun again has not ended', async () => {
  const path = newFile()
  const store = sqliteStore(path)
  const begin = { type: 'step-start', stepType: 'call-agent', kind: 'container', agent: 'b', attempt: 1 } as const
  const parts: [step: string, part: RecordedPart][] = [
    ['main/one', begin],
    ['main/one', { type: 'step-finish', duration: 1, error: { code: 'model-failed', message: 'no answer' } }],
    ['main/one', { ...begin, attempt: 2 }],
  ]
  const entries = parts.map(([step, part], i) => ({ seq: i + 2, timestamp: i + 2, step, ...part }) as Entry)
  await store.log.append('run', 1, [startEntry('run'), ...entries])
  await store.records!.settle()
  const { rows } = await store.records!.query(`SELECT status, ended_at, error FROM agents WHERE step <> ''`)
  expect(rows).toEqual([['running', null, null]])
  await store.close()
})

test('an agent that a model calls as a tool is an execution, with the usage of its own model calls', async () => {
  const path = newFile()
  const store = sqliteStore(path)
  const source = readFileSync(new URL('../../wire/golden/agent-tools.ndjson', import.meta.url), 'utf8')
  const entries = source
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry)
  for (const batch of cutAt(entries, [20, 50])) await store.log.append('run_01', 1, batch)
  await store.records!.settle()
  const ask = async (sql: string) => (await store.records!.query(sql)).rows
  expect(
    await ask(`SELECT step, agent, kind, parent_id, tool_call_id, status, error ->> 'code', total_tokens, round(cost, 6)
      FROM agents ORDER BY step`),
  ).toEqual([
    ['', 'desk', 'run', null, null, 'completed', null, 34, 0.0002],
    ['main/desk/2', 'researcher', 'call-agent', 'run_01', 'call_1', 'completed', null, 17, 0.0001],
    ['main/desk/3', 'writer', 'call-agent', 'run_01', 'call_2', 'completed', null, 34, 0.0002],
    ['main/desk/3/write/2', 'publish', 'call-agent', 'run_01/main/desk/3', 'call_4', 'completed', null, 17, 0.0001],
    ['main/desk/4', 'checker', 'call-agent', 'run_01', 'call_3', 'failed', 'failed', null, null],
  ])
  // Each model call counts once in each total.
  const [[sum, whole]] = (await ask(
    `SELECT (SELECT sum(total_tokens) FROM agents), (SELECT usage ->> 'totalTokens' FROM runs)`,
  )) as [[number, number]]
  expect(sum).toBe(whole)
  const view = (await readView(store, 'run_01'))!
  expect(Object.fromEntries(view.usageByAgent.map(({ agent, usage }) => [agent, usage.totalTokens]))).toEqual({
    desk: 34,
    researcher: 17,
    writer: 34,
    publish: 17,
  })
  const totals = await store.records!.totals({ since: 0, until: 2e12 })
  expect(totals.usage).toMatchObject({ inputTokens: 72, outputTokens: 30, knownCost: expect.closeTo(0.0006, 9) })
  expect(Object.fromEntries(totals.usageByAgent.map(({ name, inputTokens }) => [name, inputTokens]))).toEqual({
    desk: 24,
    publish: 12,
    researcher: 12,
    writer: 24,
  })
  // A call and its result are the caller's: what joins them by agent finds both.
  const pairs = `SELECT c.agent_id, c.event_id FROM agent_stream_events c
    JOIN agent_stream_events r ON r.agent_id = c.agent_id AND r.event_id = c.event_id AND r.event_type = 'tool-result'
    WHERE c.event_type = 'tool-call' ORDER BY 2`
  expect(await ask(pairs)).toEqual([
    ['run_01', 'call_1'],
    ['run_01', 'call_2'],
    ['run_01', 'call_3'],
    ['run_01/main/desk/3', 'call_4'],
  ])
  const inTables = await store.records!.streamEvents('run_01', { types: ['tool-result', 'step-start'] })
  const fromLog = await eventsOfLog(store.log, 'run_01', { types: ['tool-result', 'step-start'] })
  expect(inTables!.map(({ agentId }) => agentId)).toEqual(fromLog.map(({ agentId }) => agentId))
  await store.close()
})
