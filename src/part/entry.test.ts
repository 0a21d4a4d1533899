import { describe, expect, test } from 'vitest'
import { mergeDeltas, toModelPart, toRecorded, type Entry } from './entry.ts'
import type { ModelPart } from './model-part.ts'

describe('entries', () => {
  test('what a model says survives its recording, dates included', () => {
    const timestamp = new Date(1705584896150)
    const parts: ModelPart[] = [
      { type: 'response-metadata', id: 'r', modelId: 'm', timestamp },
      { type: 'response-metadata', modelId: 'm' },
      { type: 'text-delta', id: '1', delta: 'Hi' },
    ]
    expect(toRecorded(parts[0]!)).toMatchObject({ responseTimestamp: 1705584896150 })
    expect(parts.map((part) => toModelPart(JSON.parse(JSON.stringify(toRecorded(part)))))).toEqual(parts)
  })

  test('neighbouring deltas of one block become one, with the last one’s place; all else stays as it is', () => {
    const entry = (seq: number, part: object) => ({ seq, timestamp: seq, step: 'main/a/1', ...part }) as Entry
    const delta = (seq: number, id: string, text: string, more = {}) =>
      entry(seq, { type: 'text-delta', id, delta: text, ...more })
    const signed = { providerMetadata: { p: { signature: 's' } } }
    const start = entry(1, { type: 'text-start', id: 'x' })
    const end = entry(9, { type: 'text-end', id: 'x' })
    const merged = mergeDeltas([
      start,
      delta(2, 'x', 'a'),
      delta(3, 'x', 'b'),
      delta(4, 'x', 'c'),
      delta(5, 'y', 'd'),
      delta(6, 'x', 'e', signed),
      delta(7, 'x', 'f'),
      delta(8, 'x', ''),
      end,
    ])
    expect(merged).toEqual([
      start,
      delta(4, 'x', 'abc'),
      delta(5, 'y', 'd'),
      delta(6, 'x', 'e', signed),
      delta(8, 'x', 'f'),
      end,
    ])
    expect(mergeDeltas([])).toEqual([])
  })
})
