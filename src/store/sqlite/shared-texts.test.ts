/** Texts that entries share: what is read is what was written, each text is stored once, and nothing outlives the last run that uses it. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import type { Store } from '../../part/log.ts'
import type { Message } from '../../part/message.ts'
import { readAll } from '../contract/tools.contract.ts'
import { endEntry, entry, startEntry } from '../example-run.contract.ts'
import { createSharedTexts, restoreTexts, shareTexts } from '../shared-texts.ts'
import { sqliteStore } from './store.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-texts-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
let path: string
let store: Store
beforeEach(() => {
  path = join(folder, `${++files}.db`)
  store = sqliteStore(path)
})
afterEach(() => store.close())

function read<T>(use: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(path)
  try {
    return use(db)
  } finally {
    db.close()
  }
}
const count = (table: string) => read((db) => Number(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()!.n))
const textBytes = () =>
  read((db) => Number(db.prepare('SELECT coalesce(sum(length(text)), 0) AS n FROM texts').get()!.n))

/** Different for each number, and longer than a message that stays in its entry. */
const sentence = (i: number) => `${i} `.padEnd(700, `the boat ${i * 7919} `)
const message = (i: number): Message =>
  i % 2 === 0
    ? { role: 'user', content: sentence(i) }
    : { role: 'assistant', content: [{ type: 'text', text: sentence(i) }] }
const messages = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => message(from + i))

function runWith(run: string, list: Message[], system = 'Be brief.'): Entry[] {
  return [
    startEntry(run, { input: { messages: list } }),
    entry(2, { type: 'step-start', stepType: 'llm', attempt: 1, answer: true }, 'main/a'),
    entry(3, { type: 'step-start', stepType: 'model-call', attempt: 1 }, 'main/a/1'),
    entry(4, { type: 'prompt', stage: 'answer', model: 'm', system, messages: list }, 'main/a/1'),
    entry(5, { type: 'step-finish', duration: 1 }, 'main/a/1'),
    entry(6, { type: 'step-finish', duration: 1 }, 'main/a'),
    endEntry(7),
  ]
}

async function drop(run: string): Promise<void> {
  expect(await store.upkeep!.drop(run)).toBe(true)
}

/** What SQL says of the run's entries, as `millrace query` and any SQLite client read it. */
async function entriesInSql(run: string): Promise<Entry[]> {
  await store.records!.settle()
  return read((db) =>
    db
      .prepare(`SELECT content FROM agent_stream_events WHERE agent_id = ? ORDER BY CAST(substr(id, ?) AS INTEGER)`)
      .all(run, run.length + 2)
      .map(({ content }) => JSON.parse(String(content)) as Entry),
  )
}

describe('shared texts', () => {
  test('are unchanged in the log and in SQL, for conversations of any length', async () => {
    for (const length of [0, 1, 3, 24, 25, 200, 1500]) {
      const run = `run-${length}`
      const entries = runWith(run, messages(0, length), sentence(9).repeat(4))
      await store.log.append(run, 1, entries)
      // Another reader of the file has nothing in memory.
      const other = sqliteStore(path, { readOnly: true })
      expect(JSON.stringify(await readAll(other, run))).toBe(JSON.stringify(entries))
      await other.close()
      expect(await entriesInSql(run)).toEqual(entries)
      const events = await store.records!.streamEvents(run, { types: ['prompt'] })
      expect(events.map(({ content }) => JSON.parse(content!) as Entry)).toEqual([entries[3]])
    }
    const { rows } = await store.records!.query('SELECT prompt FROM model_calls WHERE run = :run', {
      parameters: { run: 'run-200' },
    })
    expect((JSON.parse(String(rows[0]![0])) as { messages: unknown }).messages).toEqual(messages(0, 200))
  })

  test('are unchanged, whatever they contain', async () => {
    const long = fc.oneof(fc.string({ unit: 'binary', maxLength: 30 }), fc.constant('"\\\u2028\n'.repeat(600)))
    const input = fc.dictionary(
      fc.oneof(fc.string(), fc.constantFrom('__proto__', 'messages', 'shared', 'a.b', '$')),
      fc.oneof(long, fc.array(fc.jsonValue()), fc.array(fc.dictionary(fc.string(), long), { maxLength: 60 })),
    )
    fc.assert(
      fc.property(input, fc.boolean(), (given, isForged) => {
        // As a recording from elsewhere may have it.
        const forged = isForged ? { shared: { pipeline: 'x' } } : {}
        const start = { ...startEntry('r', { input: given, pipeline: 'a'.repeat(2000) }), ...forged } as Entry
        const found = createSharedTexts()
        const stored = JSON.parse(JSON.stringify(shareTexts(start, found))) as unknown
        const find = (hash: string) => {
          const text = found.texts.get(hash)
          return text && { text: text.text(), isList: text.parts !== undefined }
        }
        const { shared: _, ...expected } = start as Entry & { shared?: unknown }
        expect(JSON.stringify(restoreTexts(stored, find))).toBe(JSON.stringify(expected))
      }),
    )
  })

  test('are stored once over the turns of a thread, also when its oldest messages are left out', async () => {
    for (let turn = 1; turn <= 100; turn++) {
      const from = Math.max(0, 2 * turn - 60)
      await store.log.append(`r${turn}`, 1, runWith(`r${turn}`, messages(from, 2 * turn)))
    }
    const said = messages(0, 200).reduce((sum, each) => sum + JSON.stringify(each).length, 0)
    expect(count('texts WHERE is_list = 0')).toBe(200)
    expect(textBytes()).toBeLessThan(said * 1.5)
    const lines = read((db) => Number(db.prepare('SELECT sum(length(entries)) AS n FROM ticks').get()!.n))
    expect(lines / 100).toBeLessThan(6000)
  })

  test('go with the last run that uses them, and no byte of them stays', async () => {
    const secret = 'the word is mellon'
    const own: Message = { role: 'user', content: `${secret} `.repeat(20) }
    await store.log.append('a', 1, runWith('a', [...messages(0, 80), own]))
    await store.log.append('b', 1, runWith('b', messages(0, 90)))
    await drop('a')
    expect(await readAll(store, 'b')).toEqual(runWith('b', messages(0, 90)))
    expect(count('texts WHERE is_list = 0')).toBe(90)
    await store.upkeep!.erase!({ rewrites: true })
    for (const suffix of ['', '-wal']) {
      expect(readFileSync(`${path}${suffix}`).includes(secret), `the file${suffix}`).toBe(false)
    }
    await drop('b')
    expect([count('texts'), count('text_uses')]).toEqual([0, 0])
  })

  test('of a fork stay with its source', async () => {
    await store.log.append('a', 1, runWith('a', messages(0, 50)))
    await store.log.fork('a', 4, 'fork')
    const [start, ...rest] = await readAll(store, 'fork')
    expect(start).toMatchObject({ type: 'run-start', input: { messages: messages(0, 50) } })
    expect(rest.at(-1)).toEqual(runWith('a', messages(0, 50))[3])
    expect(await store.upkeep!.drop('a')).toBe(false)
  })

  test('of a run from before they were shared are stored when it is compacted', async () => {
    const lists = [messages(0, 120), messages(0, 122)]
    for (const [i, list] of lists.entries()) await store.log.append(`r${i}`, 1, runWith(`r${i}`, list))
    await store.records!.settle()
    const before = [await readAll(store, 'r0'), await readAll(store, 'r1')]
    // As the schema before had them.
    read((db) => {
      for (const run of ['r0', 'r1']) {
        const text = runWith(run, lists[Number(run[1])]!)
          .map((each) => JSON.stringify(each))
          .join('\n')
        db.prepare('UPDATE ticks SET entries = ? WHERE run = ?').run(text, run)
      }
      db.exec('DELETE FROM texts; DELETE FROM text_uses; UPDATE runs SET shares_texts = 0, compacted_at = 0')
    })
    expect(await store.upkeep!.uncompacted(Infinity, 10)).toEqual(['r0', 'r1'])
    for (const run of ['r0', 'r1']) await store.upkeep!.compact(run)
    expect(await store.upkeep!.uncompacted(Infinity, 10)).toEqual([])
    expect(count('texts WHERE is_list = 0')).toBe(122)
    expect(read((db) => Number(db.prepare('SELECT max(length(entries)) AS n FROM ticks').get()!.n))).toBeLessThan(6000)
    expect([await readAll(store, 'r0'), await readAll(store, 'r1')]).toEqual(before)
    expect(await entriesInSql('r1')).toEqual(before[1])
  })

  test('that are missing make one entry unreadable, not its run', async () => {
    await store.log.append('a', 1, runWith('a', messages(0, 50), sentence(1).repeat(3)))
    read((db) => db.exec('DELETE FROM texts'))
    const other = sqliteStore(path, { readOnly: true })
    const entries = await readAll(other, 'a')
    await other.close()
    expect(entries.map(({ type }) => type)).toEqual([
      'run-start',
      'step-start',
      'step-start',
      'warning',
      'step-finish',
      'step-finish',
      'run-end',
    ])
    expect(entries[3]).toMatchObject({ code: 'unreadable-entry' })
  })
})
