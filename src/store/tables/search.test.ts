import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { timed } from '../../../test/support/recorded.ts'
import type { RecordedPart } from '../../part/entry.ts'
import type { Store } from '../../part/log.ts'
import { openDatabase } from '../sqlite/schema.ts'
import { sqliteStore } from '../sqlite/store.ts'
import { createIndexer } from './indexer.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-search-'))
afterAll(() => rmSync(root, { recursive: true }))
let count = 0
let store: Store
beforeEach(() => {
  store = sqliteStore(join(root, `${count++}.db`))
})
afterEach(() => store.close())

const step = 'main/answer/1'

/** A run in which the model says these texts, one word at a time, and calls a tool. `atOnce`: so many entries are appended together. */
async function said(
  run: string,
  texts: readonly string[],
  more: { user?: string; agent?: string; thread?: string; atOnce?: number; settles?: boolean } = {},
) {
  const { user = 'Hi', agent = 'assistant', thread = 'thread-1', atOnce = Infinity, settles = true } = more
  const input = {
    messages: [
      { role: 'user', content: 'earlier' },
      { role: 'assistant', content: 'said before' },
      { role: 'user', content: user },
    ],
  }
  const blocks = texts.flatMap((text, i): [number, string, RecordedPart][] => [
    [1, step, { type: 'text-start', id: `t${i}` }],
    ...text
      .split(/(?=\s)/u)
      .map((delta): [number, string, RecordedPart] => [1, step, { type: 'text-delta', id: `t${i}`, delta }]),
    [1, step, { type: 'text-end', id: `t${i}` }],
  ])
  const entries = timed(run, 1000 * count, [
    [
      0,
      '',
      { type: 'run-start', runId: run, agent, pipeline: 'secretpipeline', threadId: thread, protocol: 'api', input },
    ],
    [1, 'main/answer', { type: 'step-start', stepType: 'llm', kind: 'tool-loop', attempt: 1 }],
    [1, step, { type: 'step-start', stepType: 'model-call', kind: 'model-call', attempt: 1 }],
    ...blocks,
    [1, step, { type: 'tool-call', toolCallId: 'c', toolName: 'lookup', input: '{"city":"Zürich\\nSee"}' }],
    [1, step, { type: 'tool-result', toolCallId: 'c', toolName: 'lookup', result: { weather: ['sunny', 21] } }],
  ])
  for (let i = 0; i < entries.length; i += atOnce) await store.log.append(run, 1, entries.slice(i, i + atOnce))
  if (settles) await store.records!.settle()
}

const find = async (q: string, more = {}) =>
  (await store.records!.search({ q, ...more })).map(({ run, kind }) => `${run} ${kind}`)

test('words in any order, phrases and beginnings, without case and accents', async () => {
  await said('a', ['The blue whale is the largest animal.'])
  await said('b', ['A whale, not blue: grey.'])
  expect(await find('WHALE blue')).toEqual(['b text', 'a text'])
  expect(await find('"blue whale"')).toEqual(['a text'])
  expect(await find('larg*')).toEqual(['a text'])
  expect(await find('larg')).toEqual([])
  expect(await find('zurich')).toEqual(['b tool-input', 'a tool-input'])
  expect(await find('see')).toEqual(['b tool-input', 'a tool-input'])
  expect(await find('sunny 21')).toEqual(['b tool-output', 'a tool-output'])
  expect(await find('whale sunny')).toEqual([])
  for (const nothing of ['', '   ', '"" *', '!?']) expect(await find(nothing)).toEqual([])
  for (const odd of ['AND', 'a OR', 'NEAR(', 'text:whale', '^whale', "'", '"whale']) await find(odd)
})

test('what the user has just said, not the earlier messages or the pipeline', async () => {
  await said('a', ['Hello.'], { user: 'Where is Atlantis?' })
  expect(await find('atlantis')).toEqual(['a user'])
  expect(await find('earlier')).toEqual([])
  expect(await find('secretpipeline')).toEqual([])
})

test('by agent, thread and kind; the newest first, up to a limit', async () => {
  await said('a', ['whale'], { agent: 'one' })
  await said('b', ['whale'], { agent: 'two', thread: 'other' })
  await said('c', ['whale', 'whale'], { agent: 'two' })
  expect(await find('whale')).toEqual(['c text', 'c text', 'b text', 'a text'])
  expect(await find('whale', { limit: 1 })).toEqual(['c text'])
  expect(await find('whale', { agent: 'one' })).toEqual(['a text'])
  expect(await find('whale', { threadId: 'other' })).toEqual(['b text'])
  expect(await find('whale', { agent: 'two', threadId: 'thread-1' })).toEqual(['c text', 'c text'])
  expect(await find('whale', { kinds: ['user', 'tool-input'] })).toEqual([])
  await expect(find('whale', { limit: 0 })).rejects.toMatchObject({ code: 'bad-query' })
})

test('the newest is first, however long the texts are and in whatever pieces they came', async () => {
  const long = `whale ${'and so on '.repeat(4000)}`
  const ways = [
    ['a', [long], Infinity],
    ['b', ['whale'], Infinity],
    ['c', ['whale'], 1],
    ['d', ['whale'], Infinity],
    ['e', [long], 3],
    ['f', ['whale'], Infinity],
  ] as const
  for (const [run, texts, atOnce] of ways) await said(run, texts, { user: 'whale?', atOnce, settles: false })
  const all = ways.flatMap(([run]) => [`${run} user`, `${run} text`]).toReversed()
  await store.records!.settle()
  expect(await find('whale')).toEqual(all)
  await store.records!.reindex()
  expect(await find('whale')).toEqual(all)
  await store.close()
  const path = join(root, `${count - 1}.db`)
  const db = openDatabase(path, { busyTimeout: 1000 })
  let time = 0
  // Each slice ends after a step.
  const times = { slice: 1, share: 1, pause: 1e9, calm: 0, look: 1e9, first: 1e9, now: () => time++ }
  const indexer = createIndexer(db, undefined, undefined, times)
  await indexer.rebuild()
  indexer.close()
  db.close()
  store = sqliteStore(path)
  expect(await find('whale')).toEqual(all)
})

test('text in scripts without spaces is found by its characters, as they stand', async () => {
  await said('a', ['東京は日本の首都です。'])
  await said('b', ['京都と東北'])
  expect(await find('東京')).toEqual(['a text'])
  expect(await find('首都')).toEqual(['a text'])
  expect(await find('京')).toEqual(['b text', 'a text'])
})

test('a hit says where: the entry, and the words around it', async () => {
  await said('a', [`${'before '.repeat(40)}the needle is here${' after'.repeat(60)}`])
  const [hit] = await store.records!.search({ q: 'needle' })
  expect(hit).toMatchObject({ run: 'a', threadId: 'thread-1', seq: 4, kind: 'text' })
  expect(hit!.excerpt).toMatch(/before the needle is here after/u)
  expect(hit!.excerpt.length).toBeLessThanOrEqual(200)
  const [call] = await store.records!.search({ q: 'city Zürich', kinds: ['tool-input'] })
  expect(call).toBeUndefined()
  expect((await store.records!.search({ q: 'Zürich' }))[0]).toMatchObject({ kind: 'tool-input', toolName: 'lookup' })
})

test('all of a long text is found, also what stands where it was cut', async () => {
  const words = Array.from({ length: 30_000 }, (_, i) => `w${i}`)
  await said('a', [words.join(' ')], { user: words.map((word) => `u${word}`).join(' ') })
  for (const i of [0, 2_800, 3_333, 15_000, 29_999]) {
    expect(await find(`w${i}`)).toEqual(['a text'])
    expect(await find(`uw${i}`)).toEqual(['a user'])
  }
})

test.for([
  [30, 1],
  [16_383, 1],
  [16_384, 1],
  [20_000, 2],
  [70_000, 5],
])(
  'a text of %i characters is indexed alike, whether it was recorded at once or bit by bit',
  async ([length, pieces]) => {
    const words = Array.from({ length: length! / 10 + 1 }, (_, i) => `w${i}`.padEnd(9, 'x'))
    const text = words.join(' ').slice(0, length)
    const ways = [Infinity, 1, 2, 7, 100]
    for (const atOnce of ways) await said(`at-once-${atOnce}`, [text, 'something else'], { atOnce })
    const all = ways.map((atOnce) => `at-once-${atOnce} text`).toReversed()
    for (const word of [words[0]!, words[Math.floor(words.length / 2)]!, words.at(-2)!]) {
      expect(await find(word)).toEqual(all)
    }
    const db = new DatabaseSync(join(root, `${count - 1}.db`), { readOnly: true })
    const rows = db.prepare(
      `SELECT json_group_array(start ORDER BY start) AS starts FROM indexed_texts WHERE kind = 'text' AND seq = 4 GROUP BY run`,
    )
    const found = rows.all().map(({ starts }) => String(starts))
    db.close()
    expect(found.length).toBe(ways.length)
    expect(new Set(found).size).toBe(1)
    expect(JSON.parse(found[0]!)).toHaveLength(pieces!)
  },
)

test('of texts that are written at the same time each has its own words, also if they have the same id', async () => {
  const words = (type: 'text' | 'reasoning', id: string, delta: string): [number, string, RecordedPart] => [
    0,
    step,
    { type: `${type}-delta`, id, delta },
  ]
  const start = { type: 'run-start', runId: 'a', agent: 'a', pipeline: '', threadId: 't', protocol: 'api' } as const
  const entries = timed('a', 0, [
    [0, '', { ...start, input: { messages: [] } }],
    [0, step, { type: 'text-start', id: '1' }],
    words('text', '1', 'earlier'),
    [0, step, { type: 'text-end', id: '1' }],
    [0, step, { type: 'text-start', id: '1' }],
    [0, step, { type: 'text-start', id: '2' }],
    [0, step, { type: 'reasoning-start', id: '1' }],
    words('text', '1', 'alpha '),
    words('text', '2', 'beta '),
    words('reasoning', '1', 'gamma '),
    words('text', '1', 'delta'),
    [0, step, { type: 'reasoning-end', id: '1' }],
    [0, step, { type: 'text-end', id: '2' }],
    [0, step, { type: 'text-end', id: '1' }],
  ])
  await store.log.append('a', 1, entries)
  await store.records!.settle()
  const places = async (q: string) => (await store.records!.search({ q })).map(({ seq, kind }) => `${seq} ${kind}`)
  expect(await places('earlier')).toEqual(['2 text'])
  expect(await places('alpha delta')).toEqual(['5 text'])
  expect(await places('beta')).toEqual(['6 text'])
  expect(await places('gamma')).toEqual(['7 reasoning'])
  const db = new DatabaseSync(join(root, `${count - 1}.db`), { readOnly: true })
  // What the search reads again is not all that the index has.
  const hits = db.prepare('SELECT count(*) AS texts FROM search WHERE search MATCH ?')
  for (const word of ['earlier', 'alpha', 'beta', 'gamma', 'delta']) expect(hits.get(word)).toEqual({ texts: 1 })
  db.close()
})

test('a damaged line in a text costs its own words only', async () => {
  await said('a', [`the whale ${'and '.repeat(100)}the sea`])
  await store.close()
  const path = join(root, `${count - 1}.db`)
  const db = new DatabaseSync(path)
  const damage = db.prepare(`UPDATE ticks SET entries = replace(entries, '"deltas":["the"', '"deltas":["the')`)
  expect(damage.run().changes).toBe(1)
  db.close()
  store = sqliteStore(path)
  await store.records!.reindex()
  expect(await find('sea')).toEqual(['a text'])
  expect(await find('whale')).toEqual([])
  expect(await find('sunny')).toEqual(['a tool-output'])
})

test.for([true, false])(
  'a text that cannot be read or ends twice costs no other text (others wait: %s)',
  async (wait) => {
    const long = wait ? 'long '.repeat(9000) : 'short'
    await said('before', ['whale'], { user: long, settles: false })
    const start = { type: 'run-start', agent: 'a', pipeline: '', threadId: 't', protocol: 'api' }
    const odd = [
      [0, '', { ...start, runId: 'odd' }],
      [0, step, { type: 'tool-call', toolCallId: 'c', toolName: 't', input: 5 }],
      [0, step, { type: 'tool-call', toolCallId: 'd', toolName: 't' }],
      [0, step, { type: 'text-start', id: '1' }],
      [0, step, { type: 'text-delta', id: '1' }],
      [0, step, { type: 'text-end', id: '1' }],
      [0, step, { type: 'text-start', id: '2' }],
      [0, step, { type: 'text-delta', id: '2', delta: 'whale' }],
      [0, step, { type: 'text-end', id: '2' }],
      [0, step, { type: 'text-end', id: '2' }],
    ] as unknown as Parameters<typeof timed>[2]
    const entries = timed('odd', 0, odd)
    for (const batch of wait ? entries.map((entry) => [entry]) : [entries]) await store.log.append('odd', 1, batch)
    await said('after', ['whale'])
    expect(await find('whale')).toEqual(['after text', 'odd text', 'before text'])
    // Once more, after it was indexed.
    await store.log.append('odd', 1, [{ ...entries.at(-1)!, seq: entries.length + 1 }])
    await said('last', ['whale'])
    expect(await find('whale')).toEqual(['last text', 'after text', 'odd text', 'before text'])
    // What is not as its type says is read as a warning.
    const { rows } = await store.records!.query(`SELECT count(*) FROM tool_calls WHERE run = 'odd'`)
    expect(rows).toEqual([[0]])
  },
)
