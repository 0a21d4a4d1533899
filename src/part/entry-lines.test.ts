import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arbitraryRun } from '../../test/arbitrary-run.ts'
import { createEntryLines, isPlain } from './entry-lines.ts'
import type { Entry } from './entry.ts'

/** Texts with what JSON escapes, and with what it does not although it looks like it. */
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme', maxLength: 200 }),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 12 }).map((codes) => String.fromCharCode(...codes)),
  fc.constantFrom(
    '',
    '"',
    '\\',
    '\n',
    '\u007f',
    '\u2028',
    '\u2029',
    '\ud800',
    '\udc00',
    '\udc00\ud800',
    '😀',
    'é',
    '\ufeff',
  ),
  fc.constantFrom('a'.repeat(127), 'a'.repeat(128), 'a'.repeat(129), `${'a'.repeat(127)}"`, `${'a'.repeat(200)}\n`),
)
const number = fc.oneof(fc.nat(), fc.integer(), fc.double(), fc.constantFrom(-0, 1705584896150, 2 ** 53, Infinity, NaN))
const delta = fc.record({
  seq: number,
  timestamp: number,
  step: fc.oneof(fc.constantFrom('', 'main/answer/1'), text),
  type: fc.constantFrom('text-delta', 'reasoning-delta', 'tool-input-delta'),
  id: fc.oneof(fc.constantFrom('1.1', '1.2'), text),
  delta: text,
})
/** Deltas with something more, with something less, with values of other types, and with their fields in another order. */
const odd = fc
  .tuple(
    delta,
    fc.dictionary(
      fc.constantFrom('providerMetadata', 'extra', 'seq', 'timestamp', 'step', 'id', 'delta', '1'),
      fc.oneof(fc.constant(undefined), fc.constant(null), fc.jsonValue()),
    ),
    fc.shuffledSubarray(['seq', 'timestamp', 'step', 'type', 'id', 'delta'], { minLength: 5 }),
  )
  .map(([entry, more, order]) => {
    const fields = entry as Record<string, unknown>
    return { ...Object.fromEntries(order.map((key) => [key, fields[key]])), ...more }
  })

describe('entry lines', () => {
  test('the line of an entry is its JSON, whatever was before it, alone and behind others', () => {
    const check = (entries: readonly Entry[]) => {
      const expected = entries.map((entry) => JSON.stringify(entry))
      const [alone, behind] = [createEntryLines(), createEntryLines()]
      expect(entries.map((entry) => alone(entry))).toEqual(expected)
      let lines = ''
      for (const entry of entries) lines = behind(entry, lines)
      expect(lines).toBe(expected.join('\n'))
    }
    const deltas = fc.array(fc.oneof(delta, odd) as unknown as fc.Arbitrary<Entry>, { maxLength: 12 })
    fc.assert(fc.property(deltas, check), { numRuns: 500 })
    // Of a few moments and blocks, so that neighbours share them.
    const [moments, blocks] = [fc.constantFrom(1, 2), fc.constantFrom('a', 'b')]
    const near = fc.record({
      seq: fc.nat(),
      timestamp: moments,
      step: fc.constant('s'),
      type: fc.constant('text-delta'),
      id: blocks,
      delta: text,
    })
    fc.assert(fc.property(fc.array(near as unknown as fc.Arbitrary<Entry>, { maxLength: 12 }), check), { numRuns: 500 })
    fc.assert(fc.property(arbitraryRun, check), { numRuns: 50 })
  })

  test('a plain text is its JSON between two quotes', () => {
    fc.assert(fc.property(text, (given) => !isPlain(given) || JSON.stringify(given) === `"${given}"`))
    const plain = ['', 'a b', 'é', '漢', '\u2028', '\u007f', '\uffff', '\ue000']
    expect(plain.filter((each) => !isPlain(each))).toEqual([])
  })
})
