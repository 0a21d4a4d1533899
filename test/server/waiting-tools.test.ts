/** The time in which a person or a client is asked is in no statistic of tools: it has a column of its own. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { RecordedPart } from '../../src/part/entry.ts'
import { readStats } from '../../src/record/stats.ts'
import { readWindow } from '../../src/record/window-stats.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import { namedQueries } from '../../src/store/tables/named-queries.ts'
import { record, timed } from '../support/recorded.ts'

type Timed = [after: number, step: string, part: RecordedPart]

/** Calls of one run: what was asked about each for how long, and how long its tool ran then. */
const calls = [
  { toolName: 'quick', ran: 3 },
  { toolName: 'slow', ran: 7000 },
  { toolName: 'pay', kind: 'approval', waited: 900_000, ran: 40 },
  { toolName: 'deny', kind: 'approval', waited: 800_000 },
  { toolName: 'locate', kind: 'tool', waited: 700_000 },
  { toolName: 'open', kind: 'approval' },
] as const

function run(now: number) {
  const parts: Timed[] = []
  const start = { runId: 'r', agent: 'a', pipeline: 'workflow: []', threadId: 't', protocol: 'api', input: {} }
  parts.push([0, '', { type: 'run-start', ...start }])
  parts.push([0, 'main/answer', { type: 'step-start', stepType: 'llm', kind: 'tool-loop', attempt: 1 }])
  parts.push([0, 'main/answer/1', { type: 'step-start', stepType: 'model-call', kind: 'model-call', attempt: 1 }])
  for (const { toolName } of calls) {
    parts.push([0, 'main/answer/1', { type: 'tool-call', toolCallId: toolName, toolName, input: '{}' }])
  }
  parts.push([0, 'main/answer/1', { type: 'step-finish', duration: 0, finishReason: 'tool-calls' }])
  let n = 1
  for (const call of calls) {
    const { toolName } = call
    const names = { toolCallId: toolName, toolName }
    const [kind, waited, ran] = ['kind', 'waited', 'ran'].map((key) => (call as Record<string, unknown>)[key])
    const result = (after: number, more: object = {}): Timed => [
      after,
      `main/answer/${n}`,
      { type: 'tool-result', ...names, result: 'x', ...more },
    ]
    const step = (stepKind: 'approval' | 'client-tool' | 'tool-call'): Timed => [
      0,
      `main/answer/${++n}`,
      { type: 'step-start', stepType: stepKind, kind: stepKind, attempt: 1, ...names },
    ]
    const finish = (duration: number): Timed => [0, `main/answer/${n}`, { type: 'step-finish', duration }]
    if (kind !== undefined) {
      parts.push(step(kind === 'tool' ? 'client-tool' : 'approval'))
      const asked = { requestId: toolName, kind: kind as 'tool' | 'approval', input: {}, deadline: now + 1e9 }
      parts.push([0, `main/answer/${n}`, { type: 'request', ...asked, ...names }])
      if (waited === undefined) continue
      parts.push([Number(waited), `main/answer/${n}`, { type: 'response', requestId: toolName, outcome: 'answered' }])
      if (ran === undefined) parts.push(result(0, kind === 'tool' ? {} : { isError: true, outcome: 'denied' }))
      parts.push(finish(Number(waited)))
    }
    if (ran === undefined) continue
    parts.push(step('tool-call'), result(Number(ran)), finish(Number(ran)))
  }
  parts.push([0, '', { type: 'suspend', requests: ['open'] }])
  // The last request was asked ten minutes ago.
  return timed('r', now - 600_000 - parts.reduce((sum, [after]) => sum + after, 0), parts)
}

const expected = [
  { name: 'slow', calls: 1, errors: 0, p50: 7000, p95: 7000, waited: null },
  { name: 'pay', calls: 1, errors: 0, p50: 40, p95: 40, waited: { p50: 900_000, p95: 900_000 } },
  { name: 'quick', calls: 1, errors: 0, p50: 3, p95: 3, waited: null },
  { name: 'deny', calls: 1, errors: 0, p50: null, p95: null, waited: { p50: 800_000, p95: 800_000 } },
  { name: 'locate', calls: 1, errors: 0, p50: null, p95: null, waited: { p50: 700_000, p95: 700_000 } },
  { name: 'open', calls: 1, errors: 0, p50: null, p95: null, waited: null },
]

test('tables: the slowest tools, the query slow-tools, and the statistics', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-waiting-'))
  const store = sqliteStore(join(folder, 'millrace.db'))
  onTestFinished(async () => {
    await store.close()
    rmSync(folder, { recursive: true })
  })
  const now = Date.now()
  await record(store, run(now))
  await store.records!.settle()
  const { tools } = await readWindow(store, { since: 0, until: now + 1 })
  expect(tools.map(({ p95 }) => p95)).toEqual(expected.map(({ p95 }) => p95))
  expect(tools.toSorted(byName)).toEqual(expected.toSorted(byName))

  const { sql, defaults } = namedQueries['slow-tools']!
  const { columns, rows } = await store.records!.query(sql, { parameters: defaults })
  const of = (name: string) => rows.map((row) => row[columns.indexOf(name)])
  expect([of('tool_name'), of('ms'), of('waited_ms')]).toEqual([['slow'], [7000], [null]])

  const { toolCalls } = await readStats(store, { since: 0, until: now + 1 })
  expect(toolCalls.toSorted(byName).map(({ name, p99 }) => [name, p99])).toEqual([
    ['pay', 40],
    ['quick', 3],
    ['slow', 7000],
  ])
})

test('a store without tables says the same', async () => {
  const store = memoryStore()
  onTestFinished(() => store.close())
  const now = Date.now()
  await record(store, run(now))
  const { tools } = await readWindow(store, { since: 0, until: now + 1 })
  expect(tools.toSorted(byName)).toEqual(expected.toSorted(byName))
})

const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)
