import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arbitraryRun } from '../../test/arbitrary-run.ts'
import type { Entry } from '../part/entry.ts'
import { createLastBatch } from './wire.ts'
import { partsSseWire } from './parts/parts.ts'

const optionSets = [{}, { types: ['text-delta', 'run-start'] }, { types: ['step-start'] }]

/** A run as readers get it that keep up. */
const batched = fc
  .tuple(arbitraryRun, fc.infiniteStream(fc.integer({ min: 1, max: 6 })))
  .map(([entries, sizes]): Entry[][] => {
    const batches: Entry[][] = []
    for (let at = 0; at < entries.length; at += batches.at(-1)!.length) {
      batches.push(entries.slice(at, at + sizes.next().value!))
    }
    return batches
  })

describe('last batch', () => {
  test('readers of several runs get, byte for byte, what each gets alone, in whatever order they come', () => {
    fc.assert(
      fc.property(fc.array(batched, { minLength: 1, maxLength: 2 }), fc.infiniteStream(fc.nat()), (runs, picks) => {
        const shared = createLastBatch<string>()
        const readers = runs.flatMap((batches) =>
          [...optionSets, ...optionSets].map((options) => ({
            options,
            left: [...batches],
            entries: batches.flat(),
            encoder: partsSseWire.createEncoder({}, options),
            text: '',
          })),
        )
        for (let open = readers; open.length > 0; open = open.filter(({ left }) => left.length > 0)) {
          const pick = picks.next().value!
          const reader = open[pick % open.length]!
          // Who lags gets several batches at once.
          const batch = reader.left.splice(0, pick % 3 === 0 ? 2 : 1).flat()
          reader.text += shared.encode(batch, JSON.stringify(reader.options), reader.encoder)
        }
        for (const { options, entries, text, encoder } of readers) {
          const alone = partsSseWire.createEncoder({}, options)
          expect(text).toBe(entries.map((entry) => alone.encode(entry)).join(''))
          expect(encoder.state).toBe('complete')
        }
      }),
    )
  })
})
