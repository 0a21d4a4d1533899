import { describe, expect, test } from 'vitest'
import { declareScope, describeTools, type DeclaredTool } from './declarations.ts'
import { declaredTools, manyTools, strangeTools } from './testing/declared-tools.ts'

const declare = (input: unknown) => declareScope([{ name: 'a', input }]).split('\ndeclare const input')[0]

describe('declareScope', () => {
  test('declares tools with their descriptions and types, and all that is in scope', () => {
    expect(
      declareScope(declaredTools, {
        input: { type: 'object', properties: { rows: { type: 'array' } }, required: ['rows'] },
      }),
    ).toBe(`declare const tools: {
  /** Reads an order. */
  orders(input: {
    /** Number of the order. (minimum 1) */
    id: number
    with?: ("lines" | "customer")[]
  }): Promise<{
    total: number
    state: "open" | "closed"
  }>
  /** Searches the CRM. */
  crm_find(input?: {
    words?: string | null
    near?: [number?, number?]
  }): Promise<any>
  "refund-now"(input: any): Promise<any>
  ping(): Promise<string>
}
declare const input: {
  rows: any[]
}
/** Asks a person and waits, for days if need be. \`schema\`: JSON Schema of the answer; without, yes or no. */
declare function ask(message: string, schema?: object): Promise<any>
/** The declarations of the tools that fit the words. */
declare function describe(words: string): Promise<string>
declare const console: Record<'log' | 'info' | 'warn' | 'error' | 'debug', (...values: unknown[]) => void>
`)
  })

  test('depends on nothing but the tools', () => {
    const again = structuredClone(declaredTools)
    expect(declareScope(again)).toBe(declareScope(declaredTools))
    expect(declareScope([...declaredTools].toReversed())).not.toBe(declareScope(declaredTools))
  })

  test('only names tools that take too much room, and describe() has their declarations', () => {
    const whole = declareScope(manyTools(20))
    expect(whole).toContain('tool_19(')
    const text = declareScope(manyTools(400))
    expect(text.length).toBeLessThanOrEqual(24_000)
    expect(text).toContain('tool_399')
    expect(text).toContain('describe(words)')
    expect(text).not.toContain('minimum')
    expect(declareScope(manyTools(20), { most: 4000 }).length).toBeLessThanOrEqual(4000)
    const cut = declareScope(manyTools(5000))
    expect(cut.length).toBeLessThanOrEqual(24_000)
    expect(cut).toMatch(/ and \d+ more\n/u)
  })

  test.each<[string, unknown, string]>([
    [
      'references',
      {
        $ref: '#/$defs/a',
        $defs: { a: { type: 'object', properties: { b: { $ref: '#/$defs/b' } } }, b: { type: 'integer' } },
      },
      'b?: number',
    ],
    [
      'references to themselves',
      { $ref: '#/$defs/a', $defs: { a: { type: 'object', properties: { next: { $ref: '#/$defs/a' } } } } },
      'next?: any',
    ],
    ['references to nothing', { $ref: '#/$defs/__proto__' }, 'input: any'],
    ['references elsewhere', { $ref: 'http://example.com/a' }, 'input: any'],
    [
      'choices',
      { anyOf: [{ type: 'string' }, { type: 'array', items: { oneOf: [{ type: 'number' }, { type: 'null' }] } }] },
      'input: string | (number | null)[]',
    ],
    [
      'all of several',
      {
        allOf: [
          { type: 'object', properties: { a: { type: 'string' } } },
          { type: 'object', properties: { b: {} } },
        ],
      },
      '} & {',
    ],
    ['several types', { type: ['string', 'null', 'integer'] }, 'input: string | null | number'],
    ['constants', { const: 'a"b' }, 'input: "a\\"b"'],
    [
      'maps',
      { type: 'object', additionalProperties: { type: 'array', items: { type: 'string' } } },
      'Record<string, string[]>',
    ],
    [
      'open objects',
      { type: 'object', properties: { a: { type: 'number' } }, additionalProperties: true },
      '[key: string]: any',
    ],
    [
      'names that are none',
      { type: 'object', properties: { 'a-b': { type: 'number' }, __proto__x: {}, '*/': {} } },
      '"a-b"?: number',
    ],
    ['tuples', { type: 'array', prefixItems: [{ type: 'string' }], items: false }, 'input: [string?]'],
    ['long lists of values', { enum: Array.from({ length: 100 }, (_, i) => `value ${i}`) }, 'input: string'],
  ])('knows %s', (_, schema, expected) => {
    expect(declare(schema)).toContain(expected)
  })

  test('a description cannot leave its comment', () => {
    const text = declareScope([
      {
        name: 'a',
        description: 'x */ declare const evil: 1 /*\n\n  y',
        input: { type: 'object', properties: { b: { description: '*/ evil' } } },
      },
    ])
    expect(text).toContain('/** x *∕ declare const evil: 1 /* y */')
    expect(text).toContain('/** *∕ evil */')
  })

  test('strange schemas take no long and never throw', () => {
    for (const tool of strangeTools) expect(declareScope([tool]).length).toBeLessThan(24_100)
  })
})

describe('describeTools', () => {
  test('finds tools by words of their names and descriptions, the best first', () => {
    expect(describeTools(declaredTools, 'find CRM')).toMatch(/^declare const tools: \{\n {2}\/\*\* Searches/u)
    const names = (words: string) =>
      [...describeTools(declaredTools, words).matchAll(/^ {2}"?([\w-]+)"?\(/gmu)].map(([, name]) => name)
    expect(names('order')).toEqual(['orders'])
    expect(names('crm_find ping')).toEqual(['crm_find', 'ping'])
    expect(names('REFUND')).toEqual(['refund-now'])
    expect(describeTools(declaredTools, 'nothing')).toBe(
      'No tool has these words. There are: orders, crm_find, refund-now, ping.',
    )
  })

  test('stays below its limit', () => {
    const tools: DeclaredTool[] = manyTools(400)
    const text = describeTools(tools, 'tool', 3000)
    expect(text.length).toBeLessThanOrEqual(3000)
    expect(text).toContain('tool_0(')
  })
})
