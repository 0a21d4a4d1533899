/** docs/tables.md: every query runs and gives what the page says, by an index; every column is described. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Store } from '../../src/part/log.ts'
import { auditRow } from '../../src/store/contract/ledger.contract.ts'
import { testRow } from '../../src/store/contract/test-results.contract.ts'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import { namedQueries } from '../../src/store/tables/named-queries.ts'
import { tableDocs } from '../../src/store/tables/table-docs.ts'
import { callId, record, recordAll, timed } from '../support/recorded.ts'
import { documents, readDocument, snippetsIn } from './documents.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-tables-'))
let store: Store
beforeAll(async () => {
  store = sqliteStore(join(root, 'millrace.db'))
  await recordAll(store)
  await record(store, askingRun('asking', Date.now()))
  await store.audit!.add(auditRow({ outcome: 'refused' }))
  await store.testResults!.add(testRow())
  const failures = [{ what: 'text', message: 'the answer is not the text' }]
  await store.testResults!.add(testRow({ status: 'failed', isLive: true, failures }))
  await store.testResults!.add(testRow({ test: 'shop/pays' }))
  await store.feedback!.put({
    run: 'slow',
    user: 'ann',
    tenant: '',
    verdict: 'down',
    note: 'Too slow',
    time: Date.now(),
  })
  await store.records!.settle()
})
afterAll(async () => {
  await store.close()
  rmSync(root, { recursive: true })
})

/** A run that waits for the answer to a question. */
function askingRun(runId: string, now: number) {
  const start = { agent: 'asker', pipeline: 'workflow: []', threadId: 'thread-asking', protocol: 'api', input: {} }
  return timed(runId, now, [
    [0, '', { type: 'run-start', runId, ...start }],
    [1, 'main/ask', { type: 'step-start', stepType: 'ask', kind: 'custom', attempt: 1 }],
    [1, 'main/ask', { type: 'request', requestId: 'q1', kind: 'input', message: 'Go on?', deadline: now + 60_000 }],
    [1, '', { type: 'suspend', requests: ['q1'] }],
  ])
}

const page = readDocument('docs/tables.md')
const given = { run: 'slow', execution: 'slow' }

const queries = snippetsIn('sql').filter(({ place }) => place.startsWith('docs/tables.md'))

async function rowsOf(
  sql: string,
  values: Record<string, number | string> = given,
): Promise<Record<string, unknown>[]> {
  const parameters = Object.fromEntries(Object.entries(values).filter(([name]) => sql.includes(`:${name}`)))
  const { columns, rows } = await store.records!.query(sql, { parameters })
  return rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])))
}

const sorted = (rows: unknown[][]) => rows.toSorted((a, b) => String(a).localeCompare(String(b)))

/** How SQLite finds the rows. */
async function planOf(sql: string): Promise<string> {
  return (await rowsOf(`EXPLAIN QUERY PLAN ${sql}`)).map(({ detail }) => String(detail)).join('\n')
}

describe('docs: tables', () => {
  test('every query of the page gives rows', async () => {
    expect(queries.length).toBeGreaterThan(6)
    for (const { place, text } of queries) expect(await rowsOf(text), place).not.toEqual([])
  })

  test('the queries that stand in for GraphQL give rows', async () => {
    const replacing = [...readDocument('docs/migration/beddel.md').matchAll(/millrace query "([^"]+)"/gu)]
    expect(replacing).toHaveLength(3)
    const [{ agent } = {}] = await rowsOf("SELECT agent FROM runs WHERE id = 'slow'")
    for (const [, sql] of replacing) expect(await rowsOf(sql!, { ...given, agent: String(agent) }), sql).not.toEqual([])
  })

  /** By name: some columns, and what they have in the rows of the runs that are not random. */
  const answers: Record<string, [columns: string, ...rows: unknown[][]]> = {
    'slow-tools': [
      'state, tool_name, run',
      ['running', 'endless', 'slow'],
      ['took', 'find', 'slow'],
      ['took', 'find', 'child'],
    ],
    tools: [
      'tool_name, calls, not_completed, longest_ms',
      ['find', 2, 0, 6000],
      ['endless', 1, null, null],
      ['quick', 1, 1, 5],
    ],
    'slow-models': [
      'model, ms, first_token_ms, run',
      ['test:big', 60, 52, 'slow'],
      ['test:big', 60, 52, 'child'],
      ['test:small', 5, null, 'slow'],
      [null, 5, null, 'slow'],
    ],
    models: ['model, calls, failed, longest_ms', ['test:big', 2, 0, 60], ['test:small', 1, 0, 5], [null, 1, 0, 5]],
    'cost-by-model': [
      'model, runs, input_tokens, cost, without_price',
      ['test:big', 2, 20, 1, 0],
      ['test:small', 1, 10, null, 1],
    ],
    'cost-by-agent': [
      'agent, runs, output_tokens, cost, without_price',
      ['assistant', 2, 8, 1, 0],
      ['helper', 1, 4, null, 1],
    ],
    'cost-by-day': ['runs, input_tokens, output_tokens, cost, without_price', [2, 30, 12, 1, 1]],
    'cache-hits': [
      'model, agent, calls, input_tokens, cached_tokens, cached_percent, cost',
      ['test:big', 'assistant', 2, 20, 0, 0, 1],
      ['test:small', 'helper', 1, 10, 0, 0, null],
    ],
    'cost-by-run': [
      'run, agent, tokens, cost',
      ['child', 'assistant', 14, 0.5],
      ['slow', 'assistant', 28, null],
      ['asking', 'asker', null, null],
    ],
    errors: ['what, agent, run, code, message', ['tool quick', 'helper', 'slow', 'failed', '"It failed."']],
    timeline: [
      'agent, event_type, tool_name',
      ['assistant', 'tool-call', 'find'],
      ['assistant', 'tool-result', 'find'],
      ['helper', 'tool-call', 'endless'],
    ],
    executions: ['execution, agents', ['slow', 3], ['asking', 1]],
    threads: [
      'thread, status, runs, tool_calls, cost',
      ['thread-slow', 'running', 2, 4, null],
      ['thread-asking', 'suspended', 1, 0, null],
    ],
    feedback: ['agent, verdict, note, run', ['assistant', 'down', 'Too slow', 'slow']],
    tests: [
      'test, status, live, failure',
      ['shop/orders', 'failed', 1, 'the answer is not the text'],
      ['shop/pays', 'passed', 0, null],
    ],
    waiting: ['run, agent, kind, request_id, question', ['asking', 'asker', 'input', 'q1', 'Go on?']],
  }

  test('every named query gives its rows, with its defaults', async () => {
    expect(Object.keys(answers).toSorted()).toEqual(Object.keys(namedQueries).toSorted())
    for (const [name, { sql, defaults }] of Object.entries(namedQueries)) {
      const [columns, ...expected] = answers[name]!
      const found = await rowsOf(sql, { ...given, ...defaults })
      const rows = found.map((row) => columns.split(', ').map((column) => row[column]))
      // The random runs are years old.
      if (name === 'threads' || name === 'timeline') expect(rows, name).toEqual(expect.arrayContaining(expected))
      else expect(sorted(rows), name).toEqual(sorted(expected))
    }
  })

  /** What readers are told to ask: in `millrace query "…"`, and in programs. */
  const asked = documents.flatMap((document) =>
    [
      ...readDocument(document).matchAll(
        /millrace query "([^"]+)"|millrace query --named ([\w-]+)|\.query\('([^']+)'/gu,
      ),
    ].map(([, sql, named, inCode]) => ({ document, sql: sql ?? inCode ?? namedQueries[named!]?.sql })),
  )

  test('every query in a command or a program of the documentation gives rows', async () => {
    const told = new Set(asked.map(({ document }) => document))
    expect([...told]).toEqual(expect.arrayContaining(['README.md', 'docs/tables.md', 'docs/cli.md']))
    expect(asked.length).toBeGreaterThan(7)
    for (const { document, sql } of asked) {
      expect(
        await rowsOf(sql!, { run: 'slow', ms: 1000, agent: 'assistant', days: 30 }),
        `${document}: ${sql}`,
      ).not.toEqual([])
    }
    // None stands anywhere else.
    expect(new Set(snippetsIn('sql').map(({ place }) => place.split(':')[0]))).toEqual(new Set(['docs/tables.md']))
  })

  test('the query for slow calls as it was asked for names every call of an agent that had one; the others name the slow ones', async () => {
    const [as, joined, open] = queries
    const all = await rowsOf(as!.text)
    expect(sorted(all.map(({ agent_id, tool_name }) => [agent_id, tool_name]))).toEqual([
      ['child', 'find'],
      ['slow', 'find'],
      ['slow/main/ask', 'endless'],
      ['slow/main/ask', 'quick'],
    ])
    expect(sorted((await rowsOf(joined!.text)).map(({ agent_id, event_id, ms }) => [agent_id, event_id, ms]))).toEqual([
      ['child', callId, 6003],
      ['slow', callId, 6003],
    ])
    const states = (await rowsOf(open!.text)).filter(({ run }) => !String(run).startsWith('random'))
    expect(sorted(states.map(({ tool_name, state }) => [tool_name, state]))).toEqual([
      ['endless', 'running'],
      ['find', 'completed'],
      ['find', 'completed'],
    ])
    const named = await rowsOf(namedQueries['slow-tools']!.sql, { ms: 5000 })
    const known = named.filter(({ run }) => !String(run).startsWith('random'))
    expect(known.map(({ state, tool_name, agent_id }) => [state, tool_name, agent_id])).toEqual([
      ['running', 'endless', 'slow/main/ask'],
      ['took', 'find', expect.any(String)],
      ['took', 'find', expect.any(String)],
    ])
  })

  test('the timeline of an execution has the run, the agent it called and the run it started, in order', async () => {
    const sql = queries.find(({ text }) => text.includes(':execution'))!.text
    const rows = await rowsOf(sql)
    expect(new Set(rows.map(({ agent_id }) => agent_id))).toEqual(new Set(['slow', 'slow/main/ask', 'child']))
    const times = rows.map(({ timestamp }) => Number(timestamp))
    expect(times).toEqual([...times].sort((a, b) => a - b))
    expect(rows.filter(({ event_type }) => event_type === 'text-delta')).toHaveLength(4)
    const [called] = await rowsOf(`SELECT * FROM agents WHERE id = 'slow/main/ask'`)
    expect(called).toMatchObject({
      run: 'slow',
      kind: 'call-agent',
      agent: 'helper',
      model: 'test:small',
      execution_id: 'slow',
      parent_id: 'slow',
      status: 'running',
    })
    expect(JSON.parse(String(called!.stream_summary))).toEqual({
      textBlocks: 0,
      reasoningBlocks: 0,
      toolCalls: 2,
      toolResults: 1,
      errors: 0,
    })
  })

  test('the queries about events look rows up by an index and read no others', async () => {
    const filters = [
      `SELECT * FROM agent_stream_events WHERE agent_id = 'slow' AND event_type = 'tool-call' LIMIT 10`,
      `SELECT * FROM agent_stream_events WHERE event_type = 'tool-result' AND event_id = 'x'`,
      `SELECT * FROM tool_calls WHERE run = 'slow'`,
      `SELECT * FROM steps WHERE run = 'slow'`,
      `SELECT * FROM usage WHERE timestamp > 5`,
      ...queries.slice(0, 2).map(({ text }) => text),
      queries.find(({ text }) => text.includes(':execution'))!.text,
    ]
    for (const sql of filters) {
      // What is not found by a key: the lists that json_each makes of one row of the log, of one line and of the ids of 64, and the rows behind them; and
      // the texts of one entry.
      const plan = (await planOf(sql)).replaceAll(
        /SCAN (?:(?:[dijmost]|json_each) VIRTUAL TABLE|CONSTANT ROW|tail|filled|places|items|\(subquery-\d+\))/gu,
        '',
      )
      expect(plan, sql).not.toMatch(/SCAN|AUTOMATIC/u)
    }
  })

  test('every table and column is described, on the page and for --schema', async () => {
    const columns = await Promise.all(
      Object.keys(tableDocs).map(async (table) => [
        table,
        (await store.records!.query(`SELECT * FROM ${table}`)).columns,
      ]),
    )
    const described = Object.entries(tableDocs).map(([table, doc]) => [table, Object.keys(doc.columns)])
    expect(described).toEqual(columns)
    const sectionOf = (heading: string) => page.split(`\n### ${heading}\n`)[1]!.split('\n### ', 1)[0]!
    for (const [table, doc] of Object.entries(tableDocs)) {
      const section = sectionOf(`\`${table}\``)
      expect(section).toContain(`\n${doc.about}\n`)
      const also = /^Also (.*)\.$/mu.exec(section)?.[1]?.split(', ') ?? []
      for (const [name, about] of Object.entries(doc.columns)) {
        const place = also.includes(`\`${name}\``) ? sectionOf('Columns of several tables') : section
        expect(place, table).toContain(`| \`${name}\` | ${about} |`)
      }
    }
    for (const name of Object.keys(namedQueries)) expect(page).toContain(`| \`${name}\` |`)
  })

  test('agent_stream_events has just the columns that it was asked for', async () => {
    expect((await store.records!.query('SELECT * FROM agent_stream_events LIMIT 1')).columns).toEqual([
      'id',
      'agent_id',
      'event_type',
      'event_id',
      'tool_name',
      'content',
      'timestamp',
      'created_at',
    ])
  })
})
