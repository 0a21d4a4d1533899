import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Entry } from '../part/entry.ts'
import { memoryStore } from '../store/memory-store.ts'
import { textWire } from '../wire/text/text.ts'
import { readReplayState } from './run-reader.ts'

const golden = new URL('../wire/golden/reset.ndjson', import.meta.url)

describe('replay state', () => {
  test('a client that joins after a crash is shown the second attempt only', async () => {
    const entries = readFileSync(golden, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Entry)
    const { log, ...store } = memoryStore()
    const run = (entries[0] as Extract<Entry, { type: 'run-start' }>).runId
    await log.append(run, 1, entries)
    const encode = (given: Entry[]) => {
      const encoder = textWire.createEncoder()
      return { text: given.map((entry) => encoder.encode(entry)).join(''), state: encoder.state }
    }
    // Who was there from the start has read what the crash superseded, and plain text cannot take it back.
    expect(encode(entries).state).toBe('broken')
    const { filter, isAnswered } = await readReplayState(log, run)
    expect(isAnswered).toBe(true)
    const replayed = encode(filter(entries))
    expect(replayed.state).toBe('complete')
    const reset = entries.findLastIndex(({ type }) => type === 'step-reset')
    const said = entries.slice(reset).flatMap((entry) => (entry.type === 'text-delta' ? [entry.delta] : []))
    expect(replayed.text).toBe(said.join(''))
    await store.close()
  })
})

test('readers of runs without resets share one filter, and what comes alone is passed on as it is', async () => {
  const { log, ...store } = memoryStore()
  const filters = []
  for (const [run, steps] of [
    ['short', 1],
    ['long', 500],
  ] as const) {
    const start = { type: 'run-start', runId: run, agent: 'a', threadId: run, protocol: 'ui', pipeline: '', input: {} }
    const begun = Array.from({ length: steps }, (_, i) => ({
      step: `main/a/${i}`,
      type: 'step-start',
      stepType: 'tool-call',
      kind: 'tool-call',
      attempt: 1,
    }))
    const entries = [{ step: '', ...start }, ...begun].map((each, i) => ({
      seq: i + 1,
      timestamp: i,
      ...each,
    })) as Entry[]
    await log.append(run, 1, entries)
    filters.push((await readReplayState(log, run)).filter)
  }
  expect(filters[1]).toBe(filters[0])
  const delta = (seq: number) =>
    ({ seq, timestamp: 1, step: 's', type: 'text-delta', id: 't', delta: `${seq} ` }) as Entry
  const alone = [delta(7)]
  expect(filters[0]!(alone)).toBe(alone)
  expect(filters[0]!([delta(7), delta(8)])).toMatchObject([{ seq: 8, delta: '7 8 ' }])
  await store.close()
})
