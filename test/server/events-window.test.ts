/** Windows of a log: `GET /api/runs/:id/events` with `before`, `limit`, `merge`, `step` and `cut`. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { foldRun } from '../../src/fold/run-fold.ts'
import {
  createScriptedModel,
  finish,
  latch,
  reasoning,
  text,
  toolCall,
} from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, until } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'

const words = Array.from({ length: 40 }, (_, i) => `word${i} `)
const long = `${'x'.repeat(18)}\u{1f600}${'y'.repeat(5000)}`
const gate = latch()
let server: TestServer
let run: string
let all: Entry[]

beforeAll(async () => {
  const held = createScriptedModel([[text('a', 'b'), gate, text('c'), finish()]])
  const turns = [
    [
      reasoning('Hm, ', 'so.'),
      text(...words),
      toolCall('call-of-a-tool-with-a-long-id', 'add', { a: 1 }),
      finish('tool-calls'),
    ],
    [text(...words), finish()],
  ]
  const m = createScriptedModel([...turns, ...turns])
  const add = { parameters: { type: 'object', properties: {} }, execute: () => ({ list: [long], ok: true }) }
  server = await startServer({
    agents: { a: agent('tools: [add]'), held: agent().replace('script:m', 'script:held') },
    tools: { add },
    scripts: { m, held },
  })
  run = await start('a')
  await until(server.store, run, ({ type }) => type === 'run-end')
  all = await entriesOf(server.store, run)
})
afterAll(() => server.close())

async function start(agentId: string): Promise<string> {
  const messages = [{ role: 'user', content: 'Hi' }]
  return ((await (await server.post('/api/runs', { agentId, input: { messages } })).json()) as { id: string }).id
}

async function events(search: string, id = run): Promise<Entry[]> {
  const response = await fetch(`${server.url}/api/runs/${id}/events?${search}`)
  const body = await response.text()
  expect([response.status, response.headers.get('content-type')], body).toEqual([200, 'application/x-ndjson'])
  return body.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Entry]))
}

/** Its text, without how it was cut into deltas. */
function viewOf(entries: readonly Entry[]): unknown {
  const fold = foldRun()
  for (const entry of entries) fold.apply(entry)
  return fold.view()
}

test('before, limit and after: exactly those entries, from either end', async () => {
  for (const k of [0, 1, 7, 40, all.length - 3]) {
    expect(await events(`after=${k}&limit=5`)).toEqual(all.slice(k, k + 5))
    expect(await events(`after=${k}&before=${k + 4}`)).toEqual(all.slice(k, k + 3))
    expect(await events(`before=${k + 1}`)).toEqual(all.slice(0, k))
    // The ones before it, in order: a reader goes on with the `seq` of the first.
    expect(await events(`before=${k + 1}&limit=5`)).toEqual(all.slice(Math.max(0, k - 5), k))
  }
  expect(await events('limit=3')).toEqual(all.slice(0, 3))
  expect(await events(`before=${Number.MAX_SAFE_INTEGER}&limit=3`)).toEqual(all.slice(-3))
})

test('step and types: limit counts what fits, backwards too', async () => {
  const fits = all.filter(({ step, type }) => step.startsWith('main/answer/2') && type === 'tool-result')
  expect(fits).toHaveLength(1)
  expect(await events('step=main/answer/2&types=tool-result&limit=1')).toEqual(fits)
  expect(await events(`step=main/answer/2&types=tool-result&limit=1&before=${all.length + 1}`)).toEqual(fits)
  const texts = all.filter(({ type }) => type === 'text-delta')
  expect(await events(`types=text-delta&limit=60&before=${all.length}`)).toEqual(texts.slice(-60))
  expect(await events('step=main/none')).toEqual([])
})

test('merge=1: a few entries that fold to the same, each with where it begins', async () => {
  const merged = await events('merge=1')
  expect(all.length - merged.length).toBeGreaterThan(70)
  expect(viewOf(merged)).toEqual(viewOf(all))
  expect(merged.filter(({ type }) => type !== 'text-delta')).toEqual(all.filter(({ type }) => type !== 'text-delta'))
  // Windows that begin where the last one ended: nothing is missing and nothing doubled.
  const back: Entry[] = []
  for (let before = all.length + 1; before > 1;) {
    const page = await events(`merge=1&limit=17&before=${before}`)
    back.unshift(...page)
    before = page[0]!.firstSeq ?? page[0]!.seq
  }
  expect(viewOf(back)).toEqual(viewOf(all))
})

test('cut: every text is short, what names things stays, no character is halved', async () => {
  const cut = await events('cut=20')
  expect(cut).toHaveLength(all.length)
  const result = cut.find((entry) => entry.type === 'tool-result')
  expect(result).toMatchObject({
    toolCallId: 'call-of-a-tool-with-a-long-id',
    result: { list: [`${'x'.repeat(18)}…`], ok: true },
  })
  expect(Math.max(...(JSON.stringify(cut).match(/y+/gu) ?? ['']).map(({ length }) => length))).toBeLessThan(20)
  expect(cut.map(({ seq, type, step }) => [seq, type, step])).toEqual(
    all.map(({ seq, type, step }) => [seq, type, step]),
  )
  const [said] = (await events('merge=1&cut=20&types=text-delta&after=0')).slice(-1)
  expect(said).toMatchObject({ delta: `${words.join('').slice(0, 19)}…` })
})

test('a window of a run that goes on ends with what is stored', async () => {
  const id = await start('held')
  await gate.reached
  const { seq } = await until(server.store, id, ({ type }) => type === 'text-end')
  const stored = (await events('limit=10000', id)).length
  expect(stored).toBeGreaterThanOrEqual(seq)
  expect((await events('before=1000&limit=2', id)).map((each) => each.seq)).toEqual([stored - 1, stored])
  gate.open()
  await until(server.store, id, ({ type }) => type === 'run-end')
})

test('a window of a compacted run may begin inside merged deltas, and has them whole', async () => {
  const id = await start('a')
  await until(server.store, id, ({ type }) => type === 'run-end')
  await server.store.upkeep!.compact(id)
  const compacted = await entriesOf(server.store, id)
  const at = compacted.findIndex(({ firstSeq, seq }) => firstSeq !== undefined && seq - firstSeq > 20)
  const { firstSeq, seq } = compacted[at]!
  const inside = Math.round((firstSeq! + seq) / 2)
  expect(await events(`after=${inside}&limit=2`, id)).toEqual(compacted.slice(at, at + 2))
  expect(await events(`before=${seq + 1}&limit=3`, id)).toEqual(compacted.slice(at - 2, at + 1))
  expect(await events(`before=${seq + 2}&limit=9`, id)).toEqual(compacted.slice(at - 7, at + 2))
  // A follower could double what it has.
  expect((await fetch(`${server.url}/api/runs/${id}/events?after=${inside}`)).status).toBe(410)
})

describe('what makes no sense is refused', () => {
  const refused: [string, string, string?][] = [
    ['limit=0', 'limit must be a whole number from 1 to 10000.'],
    ['limit=x', 'limit must be a whole number from 1 to 10000.'],
    ['before=0', 'before must be a whole number from 1 to'],
    ['before=4&after=4', 'before must be greater than after, which is 4.'],
    ['cut=1', 'cut must be a whole number from 2 to 1000000.'],
    ['merge=yes', 'merge must be'],
    ['mrege=1', 'Unknown parameter "mrege" (did you mean "merge"?).'],
    ['merge=1&follow=1', 'merge must be absent while you follow a run: leave out follow=1'],
    ['limit=1', 'limit must be absent while you follow a run', 'text/event-stream'],
  ]
  test.each(refused)('%s', async (search, message, accept = 'application/x-ndjson') => {
    const response = await fetch(`${server.url}/api/runs/${run}/events?${search}`, { headers: { accept } })
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: expect.objectContaining({ message: expect.stringContaining(message) as string }) },
    ])
  })
})
