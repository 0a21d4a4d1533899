/**
 * What filling the tables costs, by a clock of the test: it moves by one with each statement and each row that SQLite is asked for, and
 * with each thousand characters of the log. How long a statement takes, its plan says: `sqlite-plans.test.ts`.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { StatementSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import type { Entry, RecordedPart } from '../../part/entry.ts'
import { endEntry, entry, startEntry } from '../example-run.contract.ts'
import { openDatabase } from '../sqlite/schema.ts'
import { sqliteStore } from '../sqlite/store.ts'
import { createIndexer } from './indexer.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-work-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0

let work = 0
const { get, run, all, iterate } = StatementSync.prototype
type Values = Parameters<typeof get>
beforeEach(() => {
  const count = <T>(row: T): T => {
    const log = row === undefined ? [] : Object.values(row as object).filter((value) => typeof value === 'string')
    work += 1 + log.reduce((sum, { length }) => sum + length, 0) / 1000
    return row
  }
  Object.assign(StatementSync.prototype, {
    get(this: StatementSync, ...values: Values) {
      return count(get.apply(this, values))
    },
    run(this: StatementSync, ...values: Values) {
      return count(run.apply(this, values))
    },
    all(this: StatementSync, ...values: Values) {
      work++
      return all.apply(this, values).map(count)
    },
    *iterate(this: StatementSync, ...values: Values) {
      for (const row of iterate.apply(this, values)) yield count(row)
    },
  })
})
afterEach(() => void Object.assign(StatementSync.prototype, { get, run, all, iterate }))

/** Makes a run of parts. */
type Make = (add: (step: string, part: RecordedPart) => void, n: number) => void

const steps = (n: number) => Array.from({ length: n }, (_, i) => `main/a/${i + 1}`)
const started = (kind: string, attempt = 1, more = {}) =>
  ({ type: 'step-start', stepType: kind, kind, attempt, ...more }) as RecordedPart
const finished: RecordedPart = { type: 'step-finish', duration: 1 }
const call = (toolCallId: string) => ({ toolCallId, toolName: 't' })
const usage = { source: 'reported' as const, totalTokens: 1 }

const shapes: Record<string, Make> = {
  'calls of one message, whose results come in the end': (add, n) => {
    add('main/a', started('tool-loop'))
    add('main/a/1', started('model-call'))
    for (const id of steps(n)) add('main/a/1', { type: 'tool-call', ...call(id), input: '{}' })
    add('main/a/1', finished)
    for (const id of steps(n)) add(`${id}0`, started('tool-call', 1, call(id)))
    for (const id of steps(n)) {
      add('main/a/1', { type: 'tool-result', ...call(id), result: 1 })
      add(`${id}0`, finished)
    }
  },
  'calls with the same id, one after the other': (add, n) => {
    for (const step of steps(n)) {
      add(step, { type: 'tool-call', ...call('c'), input: '{}' })
      add(step, { type: 'tool-result', ...call('c'), result: 1 })
    }
  },
  'model calls that all wait for their first token': (add, n) => {
    for (const step of steps(n)) add(step, started('model-call'))
    for (const [i, step] of steps(n).entries()) {
      add(step, { type: 'prompt', stage: 'response', model: 'm', messages: [] })
      add(step, { type: 'text-start', id: `t${i}` })
      add(step, { type: 'text-delta', id: `t${i}`, delta: 'word' })
      add(step, { type: 'text-end', id: `t${i}` })
      add(step, { type: 'usage', model: 'm', usage })
      add(step, finished)
    }
  },
  'branches that speak at once': (add, n) => {
    for (const [i, step] of steps(n).entries()) add(step, { type: 'text-start', id: `t${i}` })
    for (let word = 0; word < 5; word++) {
      for (const [i, step] of steps(n).entries()) add(step, { type: 'text-delta', id: `t${i}`, delta: ` word ${word}` })
    }
    for (const [i, step] of steps(n).entries()) add(step, { type: 'text-end', id: `t${i}` })
  },
  'called agents': (add, n) => {
    for (const step of steps(n)) {
      add(step, started('container', 1, { stepType: 'call-agent', agent: 'b' }))
      add(`${step}/x`, started('llm'))
      add(`${step}/x`, finished)
      add(step, finished)
    }
  },
  'a step inside another, and so on': (add, n) => {
    const path = (depth: number) => `main${'/s'.repeat(depth)}`
    for (let depth = 1; depth <= n / 8; depth++) add(path(depth), started('container'))
    for (let depth = Math.floor(n / 8); depth > 0; depth--) add(path(depth), finished)
  },
  requests: (add, n) => {
    const asked = { type: 'request', kind: 'input', message: 'a?', deadline: 1 } as const
    for (const requestId of steps(n)) add('main/a', { ...asked, requestId } as RecordedPart)
    for (const requestId of steps(n)) {
      add('main/a', {
        type: 'response',
        requestId,
        outcome: 'answered',
        answer: { kind: 'input', value: 1 },
      } as RecordedPart)
    }
  },
  'a reset of everything': (add, n) => {
    add('main/a', started('container'))
    for (const [i, step] of steps(n).entries()) {
      add(step, started('model-call'))
      add(step, { type: 'text-start', id: `t${i}` })
      add(step, { type: 'tool-call', ...call(`c${i}`), input: '{}' })
      add(step, { type: 'error', error: { code: 'x', message: 'y' } })
      add(step, { type: 'request', kind: 'input', requestId: `r${i}`, deadline: 1 } as RecordedPart)
    }
    add('main/a', { type: 'step-reset', attempt: 1 })
  },
  'branches that are all reset': (add, n) => {
    for (const step of steps(n)) add(step, started('model-call'))
    for (const step of steps(n)) add(step, { type: 'tool-call', ...call(step), input: '{}' })
    for (const step of steps(n)) add(step, { type: 'step-reset', attempt: 1 })
  },
  'a message whose model call is reset': (add, n) => {
    add('main/a', started('model-call'))
    for (const id of steps(n)) add('main/a', { type: 'tool-call', ...call(id), input: '{}' })
    add('main/a', { type: 'step-reset', attempt: 1 })
  },
  'a step that is reset again and again': (add, n) => {
    for (let attempt = 1; attempt <= n; attempt++) {
      add('main/a', started('container', attempt))
      add('main/a/1', started('tool-call'))
      add('main/a', { type: 'step-reset', attempt })
    }
  },
}

const slice = 100

/**
 * Fills the tables of a run of this size and of its fork. Returns all of the work, that of the longest slice, and that of reading the
 * longest row. `size`: so many entries are a row.
 */
async function fill(make: Make, n: number, size: number): Promise<{ total: number; longest: number; row: number }> {
  const path = join(folder, `${files++}.db`)
  const entries: Entry[] = [startEntry('run')]
  make((step, part) => entries.push(entry(entries.length + 1, part, step)), n)
  entries.push(endEntry(entries.length + 1))
  const store = sqliteStore(path)
  for (let i = 0; i < entries.length; i += size) await store.log.append('run', 1, entries.slice(i, i + size))
  await store.log.fork('run', entries.length, 'fork')
  await store.close()
  const db = openDatabase(path, { busyTimeout: 1000 })
  let longest = 0
  let slices = 0
  const worked = (units: number) => {
    longest = Math.max(longest, units)
    // As if another process had removed a run: what this one remembers counts no more.
    if (slices++ % 2 === 0) db.exec('UPDATE index_state SET generation = generation + 1')
  }
  const never = { share: 1, pause: 1e9, calm: 0, look: 1e9, first: 1e9 }
  const indexer = createIndexer(db, undefined, undefined, { ...never, slice, now: () => work, worked })
  const before = work
  await indexer.rebuild()
  const total = work - before
  indexer.close()
  const [{ events } = { events: 0 }] = db.prepare('SELECT count(*) AS events FROM indexed_events').all()
  expect(events).toBe(2 * entries.filter(({ type }) => !type.endsWith('-delta')).length)
  const [row] = db.prepare('SELECT max(length(entries)) AS length FROM ticks').all()
  db.close()
  return { total, longest, row: Number(row!.length) / 1000 }
}

test.each(Object.keys(shapes))(
  '%s: four times as much costs about four times as much, and a slice ends on time',
  async (name) => {
    for (const size of [40, Infinity]) {
      const short = await fill(shapes[name]!, 40, size)
      const long = await fill(shapes[name]!, 160, size)
      // Texts of a long row take another way. If each looked at all others it would be sixteen times as much.
      expect(long.total / short.total).toBeLessThan(7)
      // A text that is begun, or a row that is found, is not left in the middle.
      expect(long.longest).toBeLessThan(slice + 130 + 2 * long.row)
    }
  },
)

test('a rebuild with longer slices commits less often, and tells how much of the log it has read', async () => {
  const path = join(folder, `${files++}.db`)
  const store = sqliteStore(path)
  for (let i = 0; i < 60; i++) await store.log.append(`run${i}`, 1, [startEntry(`run${i}`), endEntry(2)])
  await store.close()
  const db = openDatabase(path, { busyTimeout: 1000 })
  let slices = 0
  const never = { share: 1, pause: 1e9, calm: 0, look: 1e9, first: 1e9 }
  const indexer = createIndexer(db, undefined, undefined, { ...never, slice, now: () => work, worked: () => slices++ })
  const cache = () => db.prepare('PRAGMA cache_size').get()
  const before = cache()
  await indexer.rebuild()
  const usual = slices
  slices = 0
  const told: number[][] = []
  await indexer.rebuild((...given) => told.push(given), 20 * slice)
  expect(slices).toBeLessThan(usual / 4)
  expect(told.at(-1)).toEqual([60, 60, 1])
  expect(cache()).toEqual(before)
  indexer.close()
  db.close()
})
