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
