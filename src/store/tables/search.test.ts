import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { record, timed } from '../../../test/support/recorded.ts'
import type { RecordedPart } from '../../part/entry.ts'
import type { Store } from '../../part/log.ts'
import { sqliteStore } from '../sqlite-store.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-search-'))
afterAll(() => rmSync(root, { recursive: true }))
let count = 0
let store: Store
beforeEach(() => {
  store = sqliteStore(join(root, `${count++}.db`))
})
afterEach(() => store.close())

const step = 'main/answer/1'

/** A run in which the model says these texts, one word at a time, and calls a tool. */
async function said(
  run: string,
  texts: readonly string[],
  more: { user?: string; agent?: string; thread?: string } = {},
) {
  const { user = 'Hi', agent = 'assistant', thread = 'thread-1' } = more
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
  await record(
    store,
    timed(run, 1000 * count, [
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
    ]),
  )
  await store.records!.settle()
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
  expect(await find('whale', { agent: 'two', threadId: 'other' })).toEqual(['b text'])
  expect(await find('whale', { kinds: ['user', 'tool-input'] })).toEqual([])
  await expect(find('whale', { limit: 0 })).rejects.toMatchObject({ code: 'bad-query' })
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
