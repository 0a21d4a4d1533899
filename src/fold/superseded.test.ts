import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arbitraryRun } from '../../test/arbitrary-run.ts'
import { buildRun, startPart, type Item } from '../../test/build-run.ts'
import type { Entry } from '../part/entry.ts'
import { createGrammar } from './grammar.ts'
import { createSuperseded, withoutSuperseded } from './superseded.ts'

const start = (step: string, attempt: number): Item => ({ step, part: { type: 'step-start', stepType: 'x', attempt } })
const say = (step: string, id: string): Item => ({ step, part: { type: 'text-start', id } })

describe('superseded attempts', () => {
  test('drops the parts of the attempt and of the steps below it, and the reset; keeps the parts of other steps', () => {
    const entries = buildRun([
      { step: '', part: startPart },
      start('main/a', 1),
      say('main/a', 'before'),
      start('main/a/1', 1),
      say('main/a/1', 'void'),
      start('main/b', 1),
      start('main/a/1/x', 1),
      say('main/a/1/x', 'void below'),
      say('main/a/10', 'neighbour'),
      { step: 'main/a/1', part: { type: 'step-reset', attempt: 1 } },
      start('main/a/1', 2),
      say('main/a/1', 'again'),
    ])
    expect(withoutSuperseded(entries).map(({ seq }) => seq)).toEqual([1, 2, 3, 6, 9, 11, 12])
  })

  test('a second crash makes the second attempt void as well', () => {
    const reset = (attempt: number): Item => ({ step: 'main/a', part: { type: 'step-reset', attempt } })
    const entries = buildRun([
      { step: '', part: startPart },
      start('main/a', 1),
      reset(1),
      start('main/a', 2),
      say('main/a', 'void'),
      reset(2),
      start('main/a', 3),
    ])
    expect(withoutSuperseded(entries).map(({ seq }) => seq)).toEqual([1, 7])
  })

  test('a reset that was not noted is passed on', () => {
    const entries = buildRun([
      { step: '', part: startPart },
      start('main/a', 1),
      { step: 'main/a', part: { type: 'step-reset', attempt: 1 } },
    ])
    const superseded = createSuperseded()
    for (const entry of entries.slice(0, 2)) superseded.note(entry)
    expect(entries.map((entry) => superseded.has(entry))).toEqual([false, false, false])
  })

  test('the remaining parts are a legal run without resets, except for seqs and attempts', () => {
    fc.assert(
      fc.property(arbitraryRun, (entries) => {
        const kept = withoutSuperseded(entries)
        const renumbered = kept.map((entry, i): Entry => {
          const dense = { ...entry, seq: i + 1 }
          return dense.type === 'step-start' ? { ...dense, attempt: 1 } : dense
        })
        const grammar = createGrammar()
        for (const entry of renumbered) expect(grammar.check(entry)).toBeUndefined()
        expect(grammar.end()).toBeUndefined()
        expect(kept.some(({ type }) => type === 'step-reset')).toBe(false)
      }),
    )
  })
})
