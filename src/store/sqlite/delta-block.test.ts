/** Deltas that are stored as one line: what is read is what was appended, by programs and by SQL. */
import { mkdtempSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import { collect } from '../contract/tools.contract.ts'
import { decodeEntries, encodeEntries, encodeTick } from '../encode.ts'
import { endEntry, entry, exampleRun, noon, startEntry } from '../example-run.contract.ts'
import { sqliteStore } from './store.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-blocks-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
let count = 0
const newFile = () => join(root, `${count++}.db`)

const delta = (seq: number, text = `word ${seq} `, more: object = {}) =>
  ({ ...entry(seq, { type: 'text-delta', id: 'a', delta: text }, 'main/x', noon), ...more }) as Entry
const linesOf = (entries: Entry[]) =>
  encodeTick('r', entries)
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

describe('delta blocks', () => {
  test('a block of deltas is read as if each had its own line', () => {
    const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 5 }), fc.constantFrom('a', '"\\\n\u2028', '\ud800'))
    const part = fc.record({
      type: fc.constantFrom('text-delta', 'text-delta', 'reasoning-delta', 'tool-input-delta', 'finish'),
      step: fc.constantFrom('main/a', 'main/a', 'main/b'),
      id: fc.constantFrom('1', '1', '2', '"'),
      delta: text,
      gap: fc.constantFrom(1, 1, 1, 2),
      // Also what no clock of ours gives.
      later: fc.constantFrom(0, 0, 1, 7, -3, 0.5),
      more: fc.constantFrom(undefined, undefined, { providerMetadata: { a: { b: 1 } } }, { firstSeq: 1 }),
    })
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
        let seq = 0
        let timestamp = noon
        const entries = parts.map(({ gap, later, more, ...rest }) => {
          const numbers = { seq: (seq += gap), timestamp: (timestamp += later) }
          return { ...numbers, step: rest.step, type: rest.type, id: rest.id, delta: rest.delta, ...more } as Entry
        })
        const alone = entries.flatMap((each) => decodeEntries([encodeEntries('r', [each])]))
        const together = decodeEntries([encodeTick('r', entries)])
        // As text: keys in another order would be another entry in an export.
        expect(together.map((each) => JSON.stringify(each))).toEqual(alone.map((each) => JSON.stringify(each)))
      }),
    )
  })

  test('deltas of one text are one line, with their times only if they differ', () => {
    expect(encodeTick('r', [delta(1), delta(2, '"')])).toBe(
      `{"seq":1,"timestamp":${noon},"step":"main/x","type":"text-delta","id":"a","deltas":["word 1 ","\\""]}`,
    )
    const later = (seq: number, ms: number) => delta(seq, 'x', { timestamp: noon + ms })
    expect(linesOf([later(7, 0), later(8, 0), later(9, 4)])).toMatchObject([{ seq: 7, offsets: [0, 0, 4] }])
    expect(encodeTick('r', [delta(1)])).toBe(JSON.stringify(delta(1)))
    expect(encodeTick('r', [])).toBe('')
  })

  test.each<[string, object]>([
    ['another text', { id: 'b' }],
    ['another step', { step: 'main/y' }],
    ['another kind of text', { type: 'reasoning-delta' }],
    ['a missing entry', { seq: 9 }],
    ['metadata', { providerMetadata: { a: {} } }],
    ['a time that is no whole ms', { timestamp: noon + 0.5 }],
  ])('%s begins another line', (_, more) => {
    const entries = [delta(1), delta(2), delta(3, 'x', more), delta(4, 'y', 'seq' in more ? { seq: 10 } : {})]
    const lines = linesOf(entries)
    expect(lines[0]).toMatchObject({ seq: 1, deltas: ['word 1 ', 'word 2 '] })
    expect(lines.length).toBeGreaterThan(1)
    expect(decodeEntries([encodeTick('r', entries)])).toEqual(entries)
  })

  test('a line has at most 64 deltas', () => {
    const lines = linesOf(Array.from({ length: 150 }, (_, i) => delta(i + 1)))
    expect(lines.map(({ seq, deltas }) => [seq, (deltas as unknown[]).length])).toEqual([
      [1, 64],
      [65, 64],
      [129, 22],
    ])
  })

  test('SQL finds the same rows whether deltas were stored one by one or together', async () => {
    const path = newFile()
    const store = sqliteStore(path)
    const run = (id: string): Entry[] => {
      const [begin, step, start, ...rest] = exampleRun(id, 300)
      const ends = rest.splice(300)
      const said = rest.map((each, i) => ({ ...each, timestamp: noon + 100 + 3 * (i >> 2) }))
      return [begin!, step!, start!, ...said, ...ends]
    }
    for (const each of run('apart')) await store.log.append('apart', 1, [each])
    await store.log.append('together', 1, run('together'))
    // Whose log ends in the middle of a line.
    await store.log.fork('together', 150, 'fork')
    await store.log.append('fork', 1, [entry(151, { type: 'step-reset', attempt: 1 }, 'main/answer')])
    await store.records!.settle()
    const rowsOf = async (id: string) => {
      const columns = 'replace(id, agent_id, ?), event_type, event_id, content, timestamp, created_at'
      const sql = `SELECT ${columns.replace('?', "''")} FROM agent_stream_events WHERE agent_id = '${id}' AND event_type <> 'run-start'`
      return (await store.records!.query(sql)).rows.toSorted((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1))
    }
    const apart = await rowsOf('apart')
    expect(apart).toHaveLength(305)
    expect(await rowsOf('together')).toEqual(apart)
    const ofFork = (await rowsOf('fork')).map(([id, , , content]) => [id, content])
    expect(ofFork).toHaveLength(150)
    expect(ofFork).toContainEqual([':150', 'word 146\n'])
    const db = new DatabaseSync(path, { readOnly: true })
    const length = (id: string) =>
      Number(db.prepare('SELECT sum(length(entries)) AS n FROM ticks WHERE run = ?').get(id)!.n)
    expect(length('together')).toBeLessThan(length('apart') / 4)
    db.close()
    await store.close()
  })

  test('a page of a run has a bounded number of entries, however short their texts are', async () => {
    const store = sqliteStore(newFile())
    const deltas = Array.from({ length: 50_000 }, (_, i) => delta(i + 2, 'ab'))
    const entries = [startEntry('r'), ...deltas, endEntry(50_002)]
    for (let i = 0; i < entries.length; i += 200) await store.log.append('r', 1, entries.slice(i, i + 200))
    let most = 0
    let seq = 0
    for await (const batch of store.log.read('r')) {
      most = Math.max(most, batch.length)
      for (const each of batch) expect(each.seq).toBe(++seq)
    }
    expect(seq).toBe(50_002)
    expect(most).toBeLessThan(3000)
    const from = await collect(store.log.read('r', { after: 12_345, before: 12_348 }))
    expect(from).toEqual([delta(12_346, 'ab'), delta(12_347, 'ab')])
    await store.close()
  })

  test('a delta with fields of its own that look like those of several is one, in the log and in SQL', async () => {
    const store = sqliteStore(newFile())
    const [begin, step, start] = exampleRun('r', 0)
    const ofStep = { step: 'main/answer', id: 'main/answer:0' }
    const odd = [{ deltas: ['A', 'B', 'C'] }, { deltas: null }, { deltas: 'abc' }, { offsets: [5000] }]
    const deltas = odd.map((more, i) => delta(4 + i, `text ${i}`, { ...ofStep, ...more }))
    await store.log.append('r', 1, [begin!, step!, start!, ...deltas, delta(8, 'last', ofStep)])
    await store.records!.settle()
    await store.log.append('lone', 1, [startEntry('lone'), delta(2, '', { delta: undefined, deltas: [] })])
    expect((await collect(store.log.read('r'))).slice(3)).toEqual([...deltas, delta(8, 'last', ofStep)])
    expect(await collect(store.log.read('lone'))).toHaveLength(2)
    const { rows } = await store.records!.query(
      `SELECT id, content, timestamp FROM agent_stream_events WHERE agent_id = 'r' AND event_type = 'text-delta'`,
    )
    const texts = ['text 0', 'text 1', 'text 2', 'text 3', 'last']
    expect(rows).toEqual(texts.map((text, i) => [`r:${4 + i}`, text, noon]))
    await store.close()
  })

  test('a delta that would be read as several is refused, and nothing of its batch is stored', async () => {
    const store = sqliteStore(newFile())
    await store.log.append('r', 1, [startEntry('r')])
    const { delta: _, ...several } = delta(3) as { delta: string }
    const appended = store.log.append('r', 1, [delta(2), { ...several, deltas: ['a', 'b'] } as unknown as Entry])
    await expect(appended).rejects.toMatchObject({ code: 'bad-entry' })
    expect(await collect(store.log.read('r'))).toHaveLength(1)
    await store.close()
  })

  test('compaction makes a run of short texts no larger, and a run with forks that begin within a line says the same', async () => {
    const store = sqliteStore(newFile())
    const entries = [startEntry('short')]
    for (let i = 0; i < 300; i++) {
      const id = `t${i}`
      const add = (part: object) =>
        entries.push({ seq: entries.length + 1, timestamp: noon, step: 'main/x', ...part } as Entry)
      add({ type: 'text-start', id })
      for (const text of ['Yes', '.']) add({ type: 'text-delta', id, delta: text })
      add({ type: 'text-end', id })
    }
    await store.log.append('short', 1, [...entries, endEntry(entries.length + 1)])
    await store.log.append('forked', 1, exampleRun('forked', 200))
    for (let seq = 10; seq < 200; seq += 9) await store.log.fork('forked', seq, `f${seq}`)
    const textOf = async (run: string) =>
      (await collect(store.log.read(run))).map((each) => ('delta' in each ? each.delta : '')).join('')
    for (const run of ['short', 'forked']) {
      const before = await textOf(run)
      const { bytesBefore, bytesAfter } = (await store.upkeep!.compact(run))!
      if (run === 'short') expect(bytesAfter).toBe(bytesBefore)
      expect(await textOf(run)).toBe(before)
    }
    expect(await textOf('f100')).toBe(
      exampleRun('r', 97)
        .map((each) => ('delta' in each ? each.delta : ''))
        .join(''),
    )
    await store.close()
  })
})
