import { describe, expect, test } from 'vitest'
import { checkInput, checkValue } from './check-input.ts'
import { equal } from '../part/equal.ts'
import type { ValueSchema } from './value-schema.ts'
import { parsePipeline, PipelineError } from './parse.ts'

function shapeOf(...lines: string[]): ValueSchema | undefined {
  return parsePipeline(['workflow: [{id: a, type: llm}]', 'input:', ...lines.map((line) => `  ${line}`)].join('\n'))
    .input
}

function faultsOf(...lines: string[]): string[] {
  try {
    shapeOf(...lines)
  } catch (error) {
    if (error instanceof PipelineError)
      return error.faults.map(({ line, column, message }) => `${line}:${column} ${message}`)
    throw error
  }
  return []
}

const shape = shapeOf(
  'topic: {type: string, minLength: 1, maxLength: 5, pattern: "^[a-z]*$", description: what to write about}',
  'count: {type: integer, default: 3, minimum: 1, maximum: 9}',
  'tone?: {enum: [dry, warm]}',
  'tags?: {type: array, items: string, maxItems: 2}',
  'author?: {type: object, properties: {name: string, admin?: boolean, level: {type: number, default: 0.5}}, additionalProperties: false}',
  'either?: {anyOf: [string, {type: object, properties: {id: integer}}]}',
  'more?: {type: object, properties: {}, additionalProperties: integer}',
  'thing?: any',
)

describe('checkInput', () => {
  test('gives the input with its defaults, and leaves the one given as it was', () => {
    const given = { topic: 'cats', author: { name: 'Ada' }, extra: 1, messages: [] }
    const checked = checkInput(shape, given)
    expect(checked).toEqual({ ...given, count: 3, author: { name: 'Ada', level: 0.5 } })
    expect(given).toEqual({ topic: 'cats', author: { name: 'Ada' }, extra: 1, messages: [] })
  })

  test.each<[unknown, string]>([
    [{}, '$input.topic is missing: expected a string (what to write about)'],
    [{ topic: 5 }, '$input.topic must be a string, not 5 (what to write about)'],
    [{ topic: '' }, '$input.topic is empty'],
    [{ topic: 'elephant' }, '$input.topic must have at most 5 characters, not 8'],
    [{ topic: 'A' }, '$input.topic must match ^[a-z]*$'],
    [{ topic: 'a', count: '3' }, '$input.count must be an integer, not "3"'],
    [{ topic: 'a', count: 2.5 }, '$input.count must be an integer, not 2.5'],
    [{ topic: 'a', count: 0 }, '$input.count must be at least 1, not 0'],
    [{ topic: 'a', count: 10 }, '$input.count must be at most 9, not 10'],
    [{ topic: 'a', count: null }, '$input.count must be an integer, not null'],
    [{ topic: 'a', tone: 'drry' }, '$input.tone must be one of dry, warm, not "drry" (did you mean "dry"?)'],
    [{ topic: 'a', tags: 'x' }, '$input.tags must be an array, not "x"'],
    [{ topic: 'a', tags: ['x', 1] }, '$input.tags.1 must be a string, not 1'],
    [{ topic: 'a', tags: ['x', 'y', 'z'] }, '$input.tags must have at most 2 items, not 3'],
    [{ topic: 'a', author: {} }, '$input.author.name is missing: expected a string'],
    [{ topic: 'a', author: { name: 'x', amdin: true } }, '$input.author.amdin is unknown (did you mean "admin"?)'],
    [{ topic: 'a', author: { name: 'x', admin: 'yes' } }, '$input.author.admin must be a boolean, not "yes"'],
    [{ topic: 'a', either: 5 }, '$input.either matches none of the allowed schemas: string, object'],
    [{ topic: 'a', more: { x: 'y' } }, '$input.more.x must be an integer, not "y"'],
    ['text', '$input must be an object, not "text"'],
    [[], '$input must be an object, not an array'],
    [null, '$input must be an object, not null'],
  ])('%j', (value, message) => {
    const run = () => checkInput(shape, value)
    expect(run).toThrow(
      expect.objectContaining({ code: 'bad-input', status: 400, message: expect.stringContaining(message) }),
    )
  })

  test('all faults at once, but not without end', () => {
    expect(() => checkInput(shape, { count: 0, tags: [1] })).toThrow(/topic.*count.*tags\.0/)
    const tags = shapeOf('tags: {type: array, items: string}')
    expect(() => checkInput(tags, { tags: Array.from({ length: 100 }, () => 1) })).toThrow(
      /tags\.19 .*; and 80 more\.$/,
    )
  })
  test('several forms, anything, any further keys', () => {
    for (const either of ['x', { id: 1 }]) expect(checkInput(shape, { topic: 'a', either })).toMatchObject({ either })
    for (const thing of [null, 1, 'x', [], {}])
      expect(checkInput(shape, { topic: 'a', thing })).toMatchObject({ thing })
    expect(checkInput(undefined, { anything: 1 })).toEqual({ anything: 1 })
    expect(checkInput({}, { anything: 1 })).toEqual({ anything: 1 })
  })
  test('names of prototypes are names like others', () => {
    const odd = shapeOf('constructor: string', 'toString?: integer')
    expect(() => checkInput(odd, {})).toThrow('$input.constructor is missing')
    expect(checkInput(odd, { constructor: 'x' })).toEqual({ constructor: 'x' })
    const given = JSON.parse('{"constructor": "x", "__proto__": {"polluted": true}}') as unknown
    expect((checkInput(odd, given) as { polluted?: unknown }).polluted).toBeUndefined()
  })
})

describe('shapes', () => {
  test('defaults and enums have the type that the shape says', () => {
    expect(
      shapeOf(
        'a: {type: string, default: 3}',
        'b: {type: number, default: "3", enum: [3, "4"]}',
        'c: {type: array, items: string, default: [1, true]}',
        'd: {type: object, properties: {x: string, y: boolean}, default: {x: 1, y: true}}',
        'e: {enum: [1, "1", null]}',
        'f: {type: any, default: 1}',
        'g: {default: true, type: boolean}',
      ),
    ).toMatchObject({
      properties: {
        a: { default: '3' },
        b: { default: 3, enum: [3, 4] },
        c: { default: ['1', 'true'] },
        d: { default: { x: '1', y: true } },
        e: { enum: [1, '1', null] },
        f: { default: 1 },
        g: { default: true },
      },
      required: ['e'],
    })
  })
  test("JSON Schema's own form", () => {
    expect(shapeOf('type: object', 'properties: {a: {type: string}, b: integer}', 'required: [b]')).toEqual({
      type: 'object',
      properties: { a: { type: 'string' }, b: { type: 'integer' } },
      required: ['b'],
    })
    // An input may be called type, properties or items all the same.
    expect(shapeOf('type: string', 'items: {type: array}')?.required).toEqual(['type', 'items'])
  })
  test.each<[string, string[], string]>([
    ['an unknown type', ['a: strng'], '3:6 the type must be one of string, number'],
    ['an unknown key', ['a: {type: string, maxlength: 3}'], '3:21 unknown key "maxlength" (did you mean "maxLength"?)'],
    ['no type', ['a: {description: x}'], '3:6 missing key "type"; add one of string'],
    [
      'a key of another type',
      ['a: {type: string, minimum: 3}'],
      '3:21 "minimum" applies to type number, not to type string',
    ],
    ['a default that does not fit', ['a: {type: integer, default: x}'], '3:31 the default must be an integer, not "x"'],
    ['a default out of range', ['a: {type: integer, default: 0, minimum: 1}'], '3:31 the default must be at least 1'],
    ['a bad pattern', ['a: {type: string, pattern: "("}'], '3:30 "pattern" is not a valid regular expression'],
    [
      'a pattern that takes time without bound',
      ['a: {type: string, pattern: "^(?=.*x)", default: y}'],
      '3:30 "pattern" uses a lookahead, which is not supported: "^(?=.*x)"',
    ],
    [
      'a fault inside',
      ['a: {type: array, items: {type: object, properties: {b: boolan}}}'],
      '3:58 the type must be one of',
    ],
    [
      'a required name that is not there',
      ['type: object', 'properties: {a: string}', 'required: [b]'],
      '"required" names "b"',
    ],
    ['the same name twice', ['a: string', 'a?: string'], '4:3 duplicate key "a"'],
    ['a list', ['- a'], '3:3 "input" must be a map: name'],
  ])('%s', (_, lines, fault) => expect(faultsOf(...lines).join('\n')).toContain(fault))
})

test('equal', () => {
  let a: unknown = 1
  let b: unknown = 1
  for (let i = 0; i < 100_000; i++) [a, b] = [[a], [b]]
  expect(equal(a, b)).toBe(true)
  expect(equal({ a: 1, b: [2] }, { b: [2], a: 1 })).toBe(true)
  expect(equal({ a: undefined }, { b: undefined })).toBe(false)
  expect(equal([], {})).toBe(false)
  expect(equal(null, {})).toBe(false)
})

test('a pattern is checked in linear time, or not at all', () => {
  const text = `${' '.repeat(120_000)}x`
  expect(checkValue({ type: 'string', pattern: String.raw`\s+$` }, text, 'it').faults).toEqual([
    String.raw`it must match \s+$`,
  ])
  const costly = '(?:a|b)*a(?:a|b){200}c'
  const mixed = Array.from({ length: 200_000 }, (_, i) => (Math.imul(i, 2_654_435_761) & (1 << 20) ? 'a' : 'b')).join(
    '',
  )
  const fault = (path: string) => `${path} is too long to be checked against ${costly}`
  expect(checkValue({ type: 'string', pattern: costly }, mixed, 'it').faults).toEqual([fault('it')])
  // Many texts have one budget together.
  const list = { type: 'array', items: { type: 'string', pattern: costly } } as const
  expect(checkValue(list, [mixed, 'a', 'b'], 'it').faults).toEqual([fault('it.0'), fault('it.1'), fault('it.2')])
})

test('of a value with faults without end a thousand are looked for', () => {
  const strings = { type: 'array', items: { type: 'string' } } as const
  const closed = { type: 'object', additionalProperties: false, properties: { topic: {}, language: {} } } as const
  const keys = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`topc${i}`, i]))
  for (const [schema, value] of [
    [strings, Array.from({ length: 100_000 }, (_, i) => i)],
    [closed, keys],
    [{ type: 'array', items: closed } as const, Array.from({ length: 1000 }, () => ({ a: 1, b: 2 }))],
  ] as const) {
    expect(checkValue(schema, value, 'it').faults.length).toBe(1000)
    expect(() => checkInput({ properties: { a: schema } }, { a: value })).toThrow(/; and many more\.$/u)
  }
})
