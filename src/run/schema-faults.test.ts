import fc from 'fast-check'
import { expect, test } from 'vitest'
import { schemaFaults } from './schema-faults.ts'

const place = {
  type: 'object',
  properties: {
    city: { type: 'string', minLength: 2 },
    at: { $ref: '#/$defs/point' },
    kind: { enum: ['a', 'b'] },
    tags: { type: 'array', items: { type: 'string' }, maxItems: 2 },
    note: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    n: { type: ['integer', 'null'], minimum: 0 },
  },
  required: ['city'],
  additionalProperties: false,
  $defs: { point: { type: 'object', properties: { x: { type: 'number' } }, required: ['x'] } },
}

test.each<[unknown, string[]]>([
  [{ city: 'Rome' }, []],
  [{ city: 'Rome', at: { x: 1 }, kind: 'a', tags: ['x'], note: null, n: 3 }, []],
  [{}, ['output.city is missing']],
  [[], ['output must be object, not array']],
  [{ city: 4 }, ['output.city must be string, not number']],
  [{ city: 'R' }, ['output.city has 1 characters, at least 2 wanted']],
  [{ city: 'Rome', at: {} }, ['output.at.x is missing']],
  [{ city: 'Rome', kind: 'c' }, ['output.kind must be "a" or "b"']],
  [
    { city: 'Rome', tags: ['x', 1, 'y'] },
    ['output.tags has 3 items, at most 2 allowed', 'output.tags[1] must be string, not number'],
  ],
  [{ city: 'Rome', note: 1 }, ['output.note fits none of what is allowed']],
  [{ city: 'Rome', n: 1.5 }, ['output.n must be integer or null, not number']],
  [{ city: 'Rome', n: -1 }, ['output.n is -1, at least 0 wanted']],
  [{ city: 'Rome', more: 1 }, ['output.more is unknown']],
])('%j', (value, faults) => expect(schemaFaults(place, value)).toEqual(faults))

test('a schema that leads in circles, or branches without end, is left after a bounded number of steps', () => {
  const circle = { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } }
  expect(schemaFaults(circle, 1)).toEqual([])
  const defs = Object.fromEntries(
    Array.from({ length: 60 }, (_, i) => {
      const next = { $ref: `#/$defs/d${i + 1}` }
      return [`d${i}`, { anyOf: [next, next], allOf: [next, next] }]
    }),
  )
  schemaFaults({ $ref: '#/$defs/d0', $defs: { ...defs, d60: { type: 'string' } } }, 1)
  schemaFaults({ items: { $ref: '#' }, allOf: [{ $ref: '#' }] }, [[[]]])
})

test('whatever the schema is, it never throws', () => {
  fc.assert(
    fc.property(
      fc.dictionary(
        fc.constantFrom('type', 'enum', 'properties', 'items', 'anyOf', 'required', 'minimum', '$ref', 'const'),
        fc.jsonValue(),
      ),
      fc.jsonValue(),
      (schema, value) => {
        expect(Array.isArray(schemaFaults(schema, value))).toBe(true)
      },
    ),
  )
})
