import { describe, expect, test } from 'vitest'
import type { Entry } from '../../../../src/part/entry.ts'
import { createFinder } from './find.ts'

const entry = (seq: number, part: object) => ({ seq, timestamp: seq, step: 'main/a', ...part }) as Entry
const delta = (seq: number, text: string, id = 't') => entry(seq, { type: 'text-delta', id, delta: text })

const found = (words: string, entries: Entry[]) => {
  const look = createFinder(words)
  return entries.map(look).filter((each) => each !== undefined)
}

describe('finding in a log', () => {
  test('every word is in the entry, in any case, also where it needs escapes', () => {
    const log = [
      entry(1, { type: 'tool-call', toolCallId: 'c1', toolName: 'calc', input: '{"expr":"12*7"}' }),
      entry(2, { type: 'tool-result', toolCallId: 'c1', toolName: 'calc', result: { text: 'She said "Hi".' } }),
      entry(3, { type: 'warning', code: 'w', message: 'Too slow' }),
    ]
    const seqs = (words: string) => found(words, log).map(({ seq }) => seq)
    expect(seqs('"expr"')).toEqual([1])
    expect(seqs('CALC')).toEqual([1, 2])
    expect(seqs('c1 hi')).toEqual([2])
    expect(seqs('slow too')).toEqual([3])
    expect(seqs('slow calc')).toEqual([])
    expect(seqs('main/a tool-call')).toEqual([1])
  })

  test('a word far into a long text, and one that a seam of two pieces divides', () => {
    const long = `${'x'.repeat(60_000)} needle ${'y'.repeat(60_000)}`
    const [hit] = found('needle', [delta(1, long)])
    expect(hit!.text).toContain('needle')
    expect(hit!.text.length).toBeLessThanOrEqual(401)
    expect(found('needle', [delta(1, 'a nee'), delta(2, 'dle b')]).map(({ seq }) => seq)).toEqual([2])
    expect(found('needle', [delta(1, 'a n'), delta(2, 'ee'), delta(3, 'dle')]).map(({ seq }) => seq)).toEqual([3])
    // What it has found once it does not find again, and other blocks are other texts.
    expect(found('needle', [delta(1, 'needle'), delta(2, ' b')]).map(({ seq }) => seq)).toEqual([1])
    expect(found('needle', [delta(1, 'nee'), delta(2, 'dle', 'other')])).toEqual([])
  })
})
