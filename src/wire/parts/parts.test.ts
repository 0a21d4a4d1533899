import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arbitraryRun } from '../../../test/arbitrary-run.ts'
import { partsSseWire, partsWire } from './parts.ts'
import { cutAt, parseSse } from '../../../test/sse.ts'
import { statelessContract, wireContract } from '../wire.contract.ts'

wireContract(partsWire, {
  follows: true,
  judge({ body, state, entries }) {
    expect(state).toBe('complete')
    expect(body.endsWith('\n')).toBe(true)
    expect(
      body
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual(plain(entries))
  },
})
wireContract(partsSseWire, { follows: true })
for (const wire of [partsWire, partsSseWire]) {
  statelessContract(wire, fc.constantFrom({}, { types: ['text-delta', 'run-end'] }, { types: ['step-start'] }))
}

describe('parts wires', () => {
  test('parts-sse: any byte cut decodes alike, with the seq as event id', () => {
    fc.assert(
      fc.property(arbitraryRun, fc.array(fc.nat(), { maxLength: 20 }), (entries, places) => {
        const encoder = partsSseWire.createEncoder()
        const bytes = new TextEncoder().encode(
          entries.map((entry) => encoder.encode(entry)).join(partsSseWire.keepAlive),
        )
        const events = parseSse(...cutAt(bytes, places))
        expect(events.map(({ data }) => JSON.parse(data))).toEqual(plain(entries))
        expect(events.map(({ id }) => id)).toEqual(entries.map(({ seq }) => String(seq)))
      }),
    )
  })
})

function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T
}
