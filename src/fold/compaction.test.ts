import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Entry } from '../part/entry.ts'
import { arbitraryRun } from '../../test/arbitrary-run.ts'
import { wordsSaid } from '../../test/words-said.ts'
import { exampleRun } from '../store/example-run.contract.ts'
import { createCompaction, mergedAround } from './compaction.ts'
import { createGrammar } from './grammar.ts'
import { foldRun } from './run-fold.ts'

const compact = (entries: readonly Entry[], bounds?: ReadonlySet<number>) => createCompaction(bounds)(entries)

function faults(entries: readonly Entry[]): string[] {
  const grammar = createGrammar()
  const found = entries.map((entry) => grammar.check(entry))
  return [...found, grammar.end()].filter((fault) => fault !== undefined)
}

function folded(entries: readonly Entry[]) {
  const fold = foldRun()
  for (const entry of entries) fold.apply(entry)
  return [fold.kept(), fold.view()]
}

/** Two blocks whose deltas alternate, each of `count`. */
function woven(count: number, size = 1): Entry[] {
  const run = exampleRun('r', 2 * count)
  const other = { ...run[2]!, id: 'other' } as Entry
  run.splice(3, 0, other)
  run.splice(-3, 0, { ...run.at(-3)!, id: 'other' } as Entry)
  const say = (entry: Entry, i: number) =>
    entry.type === 'text-delta' ? { ...entry, delta: 'x'.repeat(size), ...(i % 2 === 1 && { id: 'other' }) } : entry
  return run.map((entry, i) => ({ ...say(entry, i), seq: i + 1 }))
}

describe('compaction', () => {
  test('leaves a start, the first delta, one with the rest, and an end of each block', () => {
    const run = compact(exampleRun('r', 1000))
    expect(run.map(({ seq, firstSeq }) => [seq, firstSeq])).toEqual([
      ...[1, 2, 3, 4].map((seq) => [seq, undefined]),
      [1003, 5],
      ...[1004, 1005, 1006].map((seq) => [seq, undefined]),
    ])
  })

  test('merged deltas of three blocks, of which one lies across the others and ends last, are complete; without it they are not', () => {
    const [start, opened, first] = exampleRun('r', 1) as [Entry, Entry, Entry]
    const end = exampleRun('r', 1).slice(-3)
    const ids = ['c', 'a', 'b']
    const starts = ids.map((id) => ({ ...first, id }))
    const said = [...ids, 'c', 'c', 'a', 'a', 'b', 'c'].map((id) => ({
      type: 'text-delta',
      step: first.step,
      id,
      delta: id,
    }))
    const ends = ids.map((id) => ({ ...end[0], id }))
    const run = [start, opened, ...starts, ...said, ...ends, ...end.slice(1)].map((entry, i) => {
      return { timestamp: start.timestamp, ...entry, seq: i + 1 } as Entry
    })
    expect(faults(run)).toEqual([])
    const merged = compact(run)
    expect(merged.flatMap(({ seq, firstSeq }) => (firstSeq === undefined ? [] : [[firstSeq, seq]]))).toEqual([
      [11, 12],
      [13, 13],
      [9, 14],
    ])
    expect(faults(merged)).toEqual([])
    expect(faults(merged.filter(({ firstSeq }) => firstSeq !== 9))).toContainEqual(
      expect.stringContaining('the entries 9 to 10 are missing'),
    )
  })

  test('keeps the content, the totals and the order of any run, wherever it is cut; a second compaction changes nothing', () => {
    fc.assert(
      fc.property(arbitraryRun, fc.array(fc.nat(200)), fc.array(fc.nat(200)), (entries, cuts, bounds) => {
        const places = [0, ...new Set(cuts)].filter((at) => at < entries.length).sort((a, b) => a - b)
        const merge = createCompaction(new Set(bounds))
        const pieces = places.flatMap((from, i) => merge(entries.slice(from, places[i + 1])))
        for (const result of [compact(entries), pieces, compact(pieces)]) {
          expect(faults(result)).toEqual([])
          expect(folded(result)).toEqual(folded(entries))
          expect(wordsSaid(result)).toEqual(wordsSaid(entries))
        }
        for (const bound of bounds)
          expect(
            mergedAround(
              bound,
              pieces.filter(({ seq }) => seq > bound),
            ),
          ).toBeUndefined()
        const whole = compact(entries)
        expect(compact(whole)).toEqual(whole)
      }),
      { numRuns: 300 },
    )
  })

  test('bounds the size of merged entries, also when blocks alternate', () => {
    const run = woven(20, 5000)
    const merged = compact(run)
    expect(faults(merged)).toEqual([])
    for (const entry of merged) if (entry.type === 'text-delta') expect(entry.delta.length).toBeLessThanOrEqual(65_536)
    expect(folded(merged)).toEqual(folded(run))
  })

  test('leaves deltas with metadata as they are', () => {
    const run = exampleRun('r', 9).map((entry) =>
      entry.seq === 8 ? ({ ...entry, providerMetadata: { a: { b: 1 } } } as Entry) : entry,
    )
    expect(compact(run).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 7, 8, 12, 13, 14, 15])
    expect(compact(run)[5]).toBe(run[7])
  })

  test('every loss of an entry of a compacted run is found', () => {
    const merged = compact(woven(20, 5000))
    expect(merged.filter(({ firstSeq }) => firstSeq !== undefined).length).toBeGreaterThan(3)
    for (const [i, { type }] of merged.slice(0, -1).entries()) {
      const lost = merged.toSpliced(i, 1)
      // Of merged deltas that lie across each other, the others cover its place; but not that of the first.
      if (type !== 'text-delta' || merged[i]!.firstSeq === undefined) expect(faults(lost)).not.toEqual([])
    }
    const plain = compact(exampleRun('r', 9))
    for (const [i] of plain.entries()) expect(faults(plain.toSpliced(i, 1))).not.toEqual([])
  })

  test('a cursor among merged deltas is told where to stand instead', () => {
    const merged = compact(woven(3))
    const [first, second] = merged.filter(({ firstSeq }) => firstSeq !== undefined)
    expect([first, second]).toMatchObject([
      { seq: 9, firstSeq: 7 },
      { seq: 10, firstSeq: 8 },
    ])
    for (const [after, found] of [
      [6, undefined],
      [7, { first: 7, last: 9 }],
      [8, { first: 7, last: 10 }],
      [9, { first: 8, last: 10 }],
      [10, undefined],
    ] as const) {
      expect(
        mergedAround(
          after,
          merged.filter(({ seq }) => seq > after),
        ),
      ).toEqual(found)
    }
  })
})
