/** `query`, `reindex` and `ps --search`: the tables over the log, from the database and beside a live server. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import { folder, ran, serving } from '../support/cli.ts'

const agent = `workflow:
  - id: answer
    type: llm
    config: { model: "demo:assistant", stream: true, tools: [calculator] }
`
const files = { 'agents/a.yaml': agent }

describe('millrace query', () => {
  test('SQL over runs that were just recorded, in every format, with parameters and a limit', async () => {
    const cwd = folder(files)
    await ran(['run', 'a', '-m', 'What is 12*7?'], { cwd })
    const query = (...args: string[]) => ran(['query', ...args], { cwd })
    const sql = `SELECT tool_name AS "tool, name", input, NULL AS empty FROM tool_calls`

    const table = await query(sql)
    expect([table.code, table.err]).toEqual([0, ''])
    expect(table.out).toBe('tool, name  input                  empty\ncalculator  {"expression":"12*7"}\n')
    expect(JSON.parse((await query(sql, '--json')).out)).toEqual([
      { 'tool, name': 'calculator', input: '{"expression":"12*7"}', empty: null },
    ])
    expect((await query(sql, '--format', 'csv')).out).toBe(
      '"tool, name",input,empty\ncalculator,"{""expression"":""12*7""}",\n',
    )
    const steps = await query(
      'SELECT step FROM steps WHERE kind = :kind',
      '--param',
      'kind=model-call',
      '--format',
      'ndjson',
    )
    expect(steps.out).toBe('{"step":"main/answer/1"}\n{"step":"main/answer/3"}\n')
    const some = await query('SELECT step FROM steps', '--limit', '2', '--format', 'csv')
    expect(some).toMatchObject({
      code: 0,
      out: 'step\nmain/answer\nmain/answer/1\n',
      err: '(more rows: use --limit 20)\n',
    })

    const named = await query('--named', 'tools', '--json')
    expect(JSON.parse(named.out)).toEqual([
      expect.objectContaining({ tool_name: 'calculator', calls: 1, not_completed: 0 }),
    ])
    expect((await query('--list')).out).toMatch(/^slow-tools +ms=5000 +Tool calls/mu)
    expect((await query('--schema')).out).toMatch(/^tool_calls {2}One row per tool call\.$/mu)

    const found = await ran(['ps', '--search', '84', '--json'], { cwd })
    expect(JSON.parse(found.out)).toHaveLength(1)
    expect((await ran(['ps', '-q', 'nowhere'], { cwd })).err).toBe('no matching runs\n')

    // Built again, they are the same.
    const events = 'SELECT * FROM agent_stream_events ORDER BY id'
    const before = (await query(events, '--json')).out
    expect(await ran(['reindex'], { cwd })).toEqual({ code: 0, out: '', err: '1 runs are indexed\n' })
    expect((await query(events, '--json')).out).toBe(before)
  })

  const data = mkdtempSync(join(tmpdir(), 'millrace-query-'))
  afterAll(() => rmSync(data, { recursive: true }))

  test.each([
    [['SELECT * FROM tool_cals'], 'There is no table "tool_cals" (did you mean "tool_calls"?). Known: runs, '],
    [['SELECT agnt FROM runs'], 'There is no column "agnt" (did you mean "agent"?). millrace query --schema lists'],
    [['UPDATE runs SET agent = 1'], 'Queries only read: UPDATE is not allowed. Begin with SELECT or WITH.'],
    [['WITH x AS (SELECT 1) DELETE FROM runs'], 'Queries only read.'],
    [['SELECT :run'], 'The query needs a value for :run.'],
    [['SELECT 1', '--param', 'run=x'], 'The query has no parameter :run.'],
    [['SELECT 1', '--param', 'run'], '--param must be name=value, not "run".'],
    [['--named', 'slow-tool'], 'There is no query "slow-tool" (did you mean "slow-tools"?). Known: slow-tools, '],
    [['SELECT 1', '--named', 'tools'], 'Pass either an SQL statement or --named, not both.'],
    [[], 'Which query? Pass an SQL statement, or --named <name>; --list lists the names.'],
    [['SELECT 1', '--limit', '0'], '--limit must be a whole number from 1, not "0".'],
    [['SELECT 1', '--data', 'nowhere'], 'No runs found in nowhere.'],
  ])('query %j exits 2 and says what is wrong', async (args, message) => {
    new DatabaseSync(join(data, 'millrace.db')).close()
    const { code, out, err } = await ran(['query', '--data', data, ...args])
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain(`millrace: ${message}`)
  })

  const known = mkdtempSync(join(tmpdir(), 'millrace-query-'))
  beforeAll(async () => {
    await sqliteStore(join(known, 'millrace.db')).close()
  })
  afterAll(() => rmSync(known, { recursive: true }))

  test.each([
    ['run_id FROM steps', 'column "run_id" (did you mean "run"?)'],
    ['s.runs FROM steps s', 'column "runs" (did you mean "run"?)'],
    ['runId FROM usage', 'column "runId" (did you mean "run"?)'],
    ['run_id FROM runs', 'column "run_id" (did you mean "id"?)'],
    ['id, thread FROM runs', 'column "thread" (did you mean "thread_id"?)'],
    ['agents FROM steps', 'column "agents" (did you mean "agent"?)'],
    ['tokens FROM runs', 'column "tokens".'],
    ['* FROM run', 'table "run" (did you mean "runs"?)'],
    ['* FROM toolCalls', 'table "toolCalls" (did you mean "tool_calls"?)'],
    ['* FROM events', 'table "events" (did you mean "agent_stream_events"?)'],
    ['* FROM whales', 'table "whales".'],
  ])('SELECT %s: the word that was meant', async (sql, message) => {
    const { code, err } = await ran(['query', '--data', known, `SELECT ${sql}`])
    expect([code, err]).toEqual([2, expect.stringContaining(`There is no ${message}`)])
  })

  test('beside a live server the same file is read', async () => {
    const cwd = folder(files)
    const server = await serving([], { cwd })
    const body = JSON.stringify({ agentId: 'a', messages: [{ role: 'user', content: 'Hi whale' }] })
    await (
      await fetch(`${server.url}/api/chat`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    ).text()
    expect(await ran(['query', 'SELECT agent, status FROM runs'], { cwd })).toMatchObject({
      err: '',
      out: expect.stringMatching(/\na +completed\n/u),
    })
    expect((await ran(['query', 'SELECT kind FROM steps WHERE answer = 1', '--format', 'csv'], { cwd })).out).toBe(
      'kind\ntool-loop\n',
    )
    expect(JSON.parse((await ran(['ps', '--search', 'whale', '--json'], { cwd })).out)).toHaveLength(1)
  })
})
