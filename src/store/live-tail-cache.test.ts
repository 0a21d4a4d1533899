import { describe, expect, test } from 'vitest'
import type { Entry } from '../part/entry.ts'
import { entry } from './example-run.contract.ts'
import { createLiveTail } from './live-tail-cache.ts'

const batch = (...seqs: number[]): Entry[] =>
  seqs.map((seq) => entry(seq, { type: 'text-delta', id: 'a', delta: `${seq}` }))
const seqs = (entries: Entry[] | undefined) => entries?.map(({ seq }) => seq)

describe('createLiveTail', () => {
  test('the beginning is there for the first reader, up to 128 K characters', () => {
    const recent = createLiveTail()
    for (let seq = 1; seq <= 13; seq++) recent.push(batch(seq), 10_000)
    expect(seqs(recent.after(0))).toHaveLength(13)
    for (let seq = 14; seq <= 20; seq++) recent.push(batch(seq), 10_000)
    expect(recent.after(18)).toBeUndefined()
    expect([seqs(recent.after(19)), recent.length]).toEqual([[20], 10_000])
  })

  test('a reader close behind gets all that came since, from whichever entry on', () => {
    const recent = createLiveTail()
    const slow = { seq: 0 }
    recent.readers.add(slow)
    recent.stopWaiting()
    recent.push(batch(1, 2, 3), 30)
    recent.push(batch(4), 10)
    recent.push(batch(5, 6), 20)
    for (let seq = 0; seq < 6; seq++) {
      expect(seqs(recent.after(seq))).toEqual([1, 2, 3, 4, 5, 6].filter((each) => each > seq))
    }
  })

  test('what every reader has is let go; the last batch stays for whoever comes', () => {
    const recent = createLiveTail()
    const [fast, slow] = [{ seq: 3 }, { seq: 1 }]
    recent.stopWaiting()
    recent.readers.add(fast).add(slow)
    recent.push(batch(1, 2), 20)
    recent.push(batch(3), 10)
    recent.push(batch(4), 10)
    expect(seqs(recent.after(1))).toEqual([2, 3, 4])
    recent.readers.delete(slow)
    recent.push(batch(5), 10)
    expect(recent.after(2)).toBeUndefined()
    expect(seqs(recent.after(3))).toEqual([4, 5])
    recent.readers.clear()
    recent.push(batch(6), 10)
    expect(recent.after(4)).toBeUndefined()
    expect(seqs(recent.after(5))).toEqual([6])
  })

  test('once all readers have moved on, nothing is kept, unless the first is still to come', () => {
    const recent = createLiveTail()
    recent.push(batch(1), 10)
    recent.taken()
    expect(seqs(recent.after(0))).toEqual([1])
    const [fast, slow] = [{ seq: 0 }, { seq: 0 }]
    recent.readers.add(fast).add(slow)
    recent.stopWaiting()
    recent.push(batch(2, 3), 20)
    fast.seq = 3
    recent.taken()
    expect(seqs(recent.after(0))).toEqual([1, 2, 3])
    slow.seq = 2
    recent.taken()
    expect([recent.after(0), seqs(recent.after(2)), recent.length]).toEqual([undefined, [3], 20])
    slow.seq = 3
    recent.taken()
    expect([recent.after(2), recent.length]).toEqual([undefined, 0])
    recent.push(batch(4), 10)
    expect(seqs(recent.after(3))).toEqual([4])
  })

  test('a run with many readers keeps its last batch: nobody looks through them each time one moves on', () => {
    const recent = createLiveTail()
    for (let i = 0; i < 9; i++) recent.readers.add({ seq: 1 })
    recent.stopWaiting()
    recent.push(batch(1), 10)
    recent.taken()
    expect(recent.length).toBe(10)
    recent.push(batch(2), 10)
    expect(recent.length).toBe(10)
  })

  test('a reader that stands still costs 128 K characters and no more', () => {
    const recent = createLiveTail()
    recent.readers.add({ seq: 0 })
    recent.stopWaiting()
    for (let seq = 1; seq <= 100; seq++) recent.push(batch(seq), 10_000)
    expect(recent.after(86)).toBeUndefined()
    expect(seqs(recent.after(87))).toHaveLength(13)
    // However large, the last one is there.
    recent.push(batch(101), 1_000_000)
    expect(seqs(recent.after(100))).toEqual([101])
    expect(recent.after(99)).toBeUndefined()
  })
})
