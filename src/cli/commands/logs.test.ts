import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import { createDeltaMerger } from './logs.ts'

afterEach(() => vi.useRealTimers())

const delta = (seq: number, id: string, text: string) =>
  ({ seq, timestamp: 1, step: id, type: 'text-delta', id, delta: text }) as Entry
const other = (seq: number) => ({ seq, timestamp: 1, step: 'a', type: 'text-end', id: 'a' }) as Entry

function collect(isLive = false) {
  const seen: string[] = []
  const merger = createDeltaMerger((entry) => seen.push(`${entry.seq} ${'delta' in entry ? entry.delta : ''}`), isLive)
  return { merger, seen }
}

describe('createDeltaMerger', () => {
  test('deltas of a block become one, with the number of the last; those of another block in between do not part them', () => {
    const { merger, seen } = collect()
    for (const entry of [delta(1, 'a', 'A'), delta(2, 'b', 'B'), delta(3, 'a', 'a'), other(4), delta(5, 'a', 'x')]) {
      merger.apply(entry)
    }
    expect(seen).toEqual(['3 Aa', '2 B', '4 '])
    merger.flush()
    expect(seen).toEqual(['3 Aa', '2 B', '4 ', '5 x'])
  })

  test('a live log shows a block before it is complete; a long one is held no longer than a thousand entries', () => {
    vi.useFakeTimers()
    const live = collect(true)
    live.merger.apply(delta(1, 'a', 'A'))
    live.merger.apply(delta(2, 'a', 'B'))
    expect(live.seen).toEqual([])
    vi.advanceTimersByTime(1000)
    expect(live.seen).toEqual(['2 AB'])
    const stored = collect()
    for (let seq = 1; seq <= 1001; seq++) stored.merger.apply(delta(seq, 'a', '.'))
    expect(stored.seen).toEqual([`1000 ${'.'.repeat(1000)}`])
  })
})
