// oxlint-disable unicorn/no-thenable -- `then` is a word of JSON Schema
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { unsupportedPatterns } from './unsupported-patterns.ts'
import { validate } from './validate.ts'

type Case = [schema: unknown, good: unknown[], bad: unknown[]]

const cases: Case[] = [
  [true, [1], []],
  [false, [], [1]],
  [{ type: 'integer' }, [1, 1.0, -2], [1.5, '1', null]],
  [{ type: ['string', 'null'] }, ['a', null], [1, []]],
  [{ type: 'object' }, [{}], [[], null]],
  [{ enum: [1, 'a', { b: [1] }] }, [1, 'a', { b: [1] }], [2, { b: [2] }, null]],
  [{ const: null }, [null], [0, false]],
  [{ minLength: 2, maxLength: 3 }, ['ab', '😀😀😀', 1], ['a', 'abcd']],
  [{ pattern: '^a+$' }, ['aa', 1], ['b']],
  [{ minimum: 1, maximum: 3 }, [1, 3, 'x'], [0, 4]],
  [{ exclusiveMinimum: 1, exclusiveMaximum: 3 }, [2], [1, 3]],
  [{ multipleOf: 0.1 }, [0.3, 1, 1e10], [0.35]],
  [{ multipleOf: 3 }, [9, 0, -3], [10]],
  [{ minItems: 1, maxItems: 2 }, [[1], [1, 2], 'x'], [[], [1, 2, 3]]],
  [
    { uniqueItems: true },
    [
      [1, '1', true],
      [{ a: 1 }, { a: 2 }],
    ],
    [
      [1, 1],
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      [null, null],
    ],
  ],
  [{ items: { type: 'string' } }, [['a'], []], [['a', 1]]],
  [{ prefixItems: [{ type: 'string' }], items: { type: 'number' } }, [['a', 1], [], ['a']], [[1], ['a', 'b']]],
  [{ contains: { type: 'string' }, minContains: 2, maxContains: 3 }, [['a', 'b', 1]], [['a'], ['a', 'b', 'c', 'd']]],
  [{ required: ['a'] }, [{ a: undefined }, { a: 1 }, 'x'], [{}, { b: 1 }]],
  [{ minProperties: 1, maxProperties: 2 }, [{ a: 1 }], [{}, { a: 1, b: 2, c: 3 }]],
  [{ properties: { a: { type: 'string' } }, additionalProperties: false }, [{}, { a: 'x' }], [{ a: 1 }, { b: 1 }]],
  [
    { patternProperties: { '^x-': { type: 'number' } }, additionalProperties: { type: 'string' } },
    [{ 'x-a': 1, b: 'c' }],
    [{ 'x-a': 'b' }, { b: 1 }],
  ],
  [{ propertyNames: { maxLength: 2 } }, [{ ab: 1 }], [{ abc: 1 }]],
  [{ dependentRequired: { a: ['b'] } }, [{ a: 1, b: 2 }, { b: 1 }], [{ a: 1 }]],
  [{ dependentSchemas: { a: { required: ['b'] } } }, [{ a: 1, b: 2 }], [{ a: 1 }]],
  [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1, 2], [0, 3]],
  [{ anyOf: [{ type: 'string' }, { minimum: 5 }] }, ['a', 5], [4]],
  [{ oneOf: [{ minimum: 1 }, { maximum: 3 }] }, [0, 4], [2]],
  [{ not: { type: 'string' } }, [1], ['a']],
  [{ if: { type: 'string' }, then: { minLength: 2 }, else: { minimum: 2 } }, ['ab', 2], ['a', 1]],
  [{ $defs: { a: { type: 'string' } }, properties: { b: { $ref: '#/$defs/a' } } }, [{ b: 'x' }], [{ b: 1 }]],
  [{ $defs: { 'a/b c~': { type: 'string' } }, $ref: '#/$defs/a~1b%20c~0' }, ['x'], [1]],
  [{ $defs: { a: { $anchor: 'here', type: 'string' } }, $ref: '#here' }, ['x'], [1]],
  [
    { $id: 'https://example.com/a', $defs: { a: { type: 'string' } }, $ref: 'https://example.com/a#/$defs/a' },
    ['x'],
    [1],
  ],
  [
    { type: 'object', properties: { next: { $ref: '#' } }, additionalProperties: false },
    [{ next: { next: {} } }],
    [{ next: { nxt: {} } }],
  ],
  [{ properties: { constructor: { type: 'string' }, __proto__: {} } }, [{}], [{ constructor: 1 }]],
  [
    { items: { contains: { type: 'string' } } },
    [[['a'], [1, 'b']]],
    [
      [['a'], []],
      [[], ['a']],
    ],
  ],
]

test.each(cases)('%j', (schema, good, bad) => {
  for (const value of good) expect([value, validate(schema, value)]).toEqual([value, []])
  for (const value of bad) expect(validate(schema, value), JSON.stringify(value)).not.toEqual([])
})

describe('older drafts', () => {
  test.each<Case>([
    [{ minimum: 1, exclusiveMinimum: true, maximum: 3, exclusiveMaximum: true }, [2], [1, 3]],
    [{ items: [{ type: 'string' }], additionalItems: false }, [['a'], []], [['a', 1], [1]]],
    [{ definitions: { a: { type: 'string' } }, $ref: '#/definitions/a' }, ['x'], [1]],
    [
      { dependencies: { a: ['b'], c: { required: ['d'] } } },
      [
        { a: 1, b: 1 },
        { c: 1, d: 1 },
      ],
      [{ a: 1 }, { c: 1 }],
    ],
    [{ definitions: { a: { $id: '#here', type: 'string' } }, $ref: '#here' }, ['x'], [1]],
  ])('%j', (schema, good, bad) => {
    for (const value of good) expect(validate(schema, value)).toEqual([])
    for (const value of bad) expect(validate(schema, value)).not.toEqual([])
  })
})

test('a random schema accepts the same values as in Ajv', () => {
  const ajv = new AjvJsonSchemaValidator()
  const leaf = fc.constantFrom<unknown>(
    true,
    { type: 'string' },
    { type: 'integer' },
    { minimum: 1 },
    { maxLength: 1 },
    { required: ['a'] },
    { const: 1 },
    { maxItems: 1 },
    { pattern: '^a' },
    { enum: ['a', 1, null] },
    { uniqueItems: true },
    { minProperties: 1 },
  )
  const { schema } = fc.letrec<{ schema: unknown }>((tie) => {
    const list = fc.array(tie('schema'), { minLength: 1, maxLength: 2 })
    const one = (key: string) => tie('schema').map((inner) => ({ [key]: inner }))
    const many = (key: string) => list.map((inner) => ({ [key]: inner }))
    return {
      schema: fc.oneof(
        { maxDepth: 3, withCrossShrink: true },
        leaf,
        fc.oneof(...['not', 'items', 'additionalProperties', 'contains', 'propertyNames'].map(one)),
        fc.oneof(...['allOf', 'anyOf', 'oneOf', 'prefixItems'].map(many)),
        fc.tuple(tie('schema'), tie('schema')).map(([a, b]) => ({ properties: { a, b } })),
        fc.tuple(tie('schema'), tie('schema'), tie('schema')).map(([a, b, c]) => ({ if: a, then: b, else: c })),
        fc.tuple(tie('schema'), tie('schema')).map(([a, b]) => ({ ...(a as object), ...(b as object) })),
      ),
    }
  })
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 2 },
      fc.constantFrom<unknown>('a', 'ab', '', 0, 1, 2.5, null, true),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('a', 'b', 'cc'), tie('value'), { maxKeys: 2, noNullPrototype: true }),
    ),
  }))
  fc.assert(
    fc.property(schema, fc.array(value, { minLength: 1, maxLength: 5 }), (given, values) => {
      // Ajv keeps the result of `contains` from one turn of a loop to the next. See the table above.
      fc.pre(!/"(?:items|additionalProperties|contains)":.*"contains"/u.test(JSON.stringify(given)))
      const theirs = ajv.getValidator({ allOf: [given] } as Parameters<typeof ajv.getValidator>[0])
      for (const each of values) {
        expect(validate(given, each).length === 0, `${JSON.stringify(given)} on ${JSON.stringify(each)}`).toBe(
          theirs(each).valid,
        )
      }
    }),
    { numRuns: 500 },
  )
})

test('each fault is reported with its path, at most twenty of them', () => {
  const schema = { properties: { list: { items: { properties: { b: { type: 'number' } }, required: ['c'] } } } }
  expect(validate(schema, { list: [{ b: 1, c: 1 }, { b: 'x' }] })).toEqual([
    'list.1.c: is missing',
    'list.1.b: must be number, not string',
  ])
  expect(validate(false, 1)).toEqual(['is not allowed'])
  expect(validate({ items: false }, Array<number>(1000).fill(0))).toHaveLength(20)
})

describe('a hostile schema holds nothing up', () => {
  const costly = 'too complex to validate'

  test.each([
    ['a pattern that takes exponential time', { pattern: '^(a+)+$' }, `${'a'.repeat(100_000)}b`, 'pattern'],
    ['a pattern that takes quadratic time', { pattern: '\\s+$' }, `${' '.repeat(120_000)}x`, 'pattern'],
    ['a circle', { $ref: '#' }, 1, costly],
    [
      'a circle of two',
      { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } }, $ref: '#/$defs/a' },
      1,
      costly,
    ],
    ['a tree of circles', { anyOf: [{ $ref: '#' }, { $ref: '#' }] }, 1, costly],
    ['doubling', { $defs: doubling(40), $ref: '#/$defs/d40' }, 1, costly],
    [
      'patterns without end',
      { allOf: Array.from({ length: 5000 }, (_, i) => ({ pattern: `(?:a{990}|${i}){2}` })) },
      'b',
      'pattern',
    ],
    [
      'a costly pattern that is refused, for many texts',
      { items: { pattern: 'a{100000}' }, maxItems: 1 },
      Array<string>(300_000).fill('a'),
      'at most 1 items',
    ],
    [
      'many names for many objects',
      { items: { required: Array.from({ length: 50_000 }, (_, i) => `k${i}`), maxProperties: 9 } },
      Array.from({ length: 50_000 }, () => ({})),
      'missing',
    ],
    ['the same pattern for many texts', { items: { pattern: '(?:a|b)*a(?:a|b){200}c' } }, mixed(), costly],
  ])('%s', (_, schema, value, message) => {
    expect(validate(schema, value).join()).toContain(message)
  })

  test('words of the wrong type are passed over', () => {
    for (const word of [
      'type',
      'enum',
      'required',
      'properties',
      'pattern',
      'items',
      'allOf',
      '$ref',
      'minimum',
      'dependencies',
      'if',
    ]) {
      for (const wrong of [1, 'x', null, [], [1], {}, true])
        expect(() => validate({ [word]: wrong }, { a: 1 })).not.toThrow()
    }
  })

  function doubling(levels: number): Record<string, unknown> {
    const defs: Record<string, unknown> = { d0: true }
    for (let i = 1; i <= levels; i++) {
      const lower = { $ref: `#/$defs/d${i - 1}` }
      defs[`d${i}`] = { allOf: [lower, lower] }
    }
    return defs
  }
  function mixed(): string[] {
    const long = Array.from({ length: 50_000 }, (_, i) => (Math.imul(i, 2_654_435_761) & (1 << 20) ? 'a' : 'b')).join(
      '',
    )
    return Array<string>(100).fill(long)
  }
})

test('references outside the document and unbounded patterns are not enforced; the patterns are named', () => {
  expect(
    validate({ properties: { a: { $ref: 'https://example.com/a' }, b: { type: 'string' } } }, { a: 1, b: 'x' }),
  ).toEqual([])
  const schema = { properties: { a: { pattern: '^(?=x)' }, b: { pattern: '^b' } }, patternProperties: { '(a)\\1': {} } }
  expect(validate(schema, { a: 'y', b: 'b' })).toEqual([])
  expect(validate(schema, { a: 'y', b: 'c' })).toHaveLength(1)
  expect(unsupportedPatterns(schema).toSorted()).toEqual([
    String.raw`"(a)\\1" uses a back-reference, which is not supported`,
    '"^(?=x)" uses a lookahead, which is not supported',
  ])
  expect(unsupportedPatterns(undefined)).toEqual([])
})
