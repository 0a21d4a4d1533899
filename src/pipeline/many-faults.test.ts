/** Files with very many faults: the work stays in proportion to the file, and the report stays readable. */
import { describe, expect, test } from 'vitest'
import { checkInput } from './check-input.ts'
import { parsePipeline, PipelineError } from './parse.ts'
import type { Fault, Known } from './pipeline.ts'
import { countCpu } from '../../test/support/cpu.ts'

const known: Known = { stepTypes: [], tools: ['calculator'], callbacks: [], providers: ['demo'], agents: ['other'] }

function faultsOf(text: string): Fault[] {
  try {
    parsePipeline(text, known)
  } catch (error) {
    if (error instanceof PipelineError) return error.faults
    throw error
  }
  return []
}

function cpuOf(act: () => void): number {
  const cpu = countCpu()
  act()
  return cpu()
}

const list = (length: number, item: (i: number) => string) => Array.from({ length }, (_, i) => item(i))
const flow = (length: number, item: (i: number) => string) => list(length, item).join(', ')
const long = (i: number) => `${'abcdefghij'.repeat(4)}${(i * 7919).toString(36)}`
const results = list(
  500,
  (i) => `  - { id: s${i}, type: output-generator, config: { template: 1 }, result: ${long(i)} }`,
)

const cases: [what: string, text: string, places: number][] = [
  ['references to nothing', `${['workflow:', ...results].join('\n')}\n${badReferences(3000)}`, 3000],
  ['unknown tools', `workflow: [{ id: a, type: llm, config: { tools: [${flow(90_000, (i) => `${i}q`)}] } }]`, 90_000],
  ['unknown keys', list(40_000, (i) => `k${i}: 1`).join('\n'), 40_001],
  [
    'unknown agents',
    `workflow: [${flow(9000, (i) => `{ id: a${i}, type: call-agent, config: { agent: g${i} } }`)}]`,
    9000,
  ],
  ['duplicate ids', `workflow: [${flow(15_000, () => '{ id: a, type: llm }')}]`, 14_999],
]

function badReferences(count: number): string {
  const items = list(count, (i) => `      - $${long(-i - 1).replace('-', 'x')}.text`)
  return ['  - id: bad', '    type: output-generator', '    config:', '     template:', ...items].join('\n')
}

describe.each(cases)('%s', (_, text, places) => {
  test('the first 100 are reported in order, and how many places more there are', () => {
    let faults: Fault[] = []
    // Quadratic work took from 5 s to minutes.
    expect(cpuOf(() => (faults = faultsOf(text)))).toBeLessThan(4000)
    expect(faults).toHaveLength(101)
    const lines = faults.slice(0, 100).map(({ line, column }) => line * 1e7 + column)
    expect(lines).toEqual(lines.toSorted((a, b) => a - b))
    const more = places - 100
    expect(faults.at(-1)).toMatchObject({
      message: `… and errors at ${more} more places; fix the ones above first`,
      more,
    })
  })
})

test('a hundred faults are reported in full', () => {
  const text = `workflow: [{ id: a, type: llm, config: { tools: [${flow(100, (i) => `${i}q`)}] } }]`
  expect(faultsOf(text)).toHaveLength(100)
  expect(faultsOf(text).every(({ more }) => more === undefined)).toBe(true)
})

test('a request with very many wrong values costs no suggestion for each', () => {
  const values = list(500, long)
  const items = { type: 'string' as const, enum: values }
  const wrong = list(20_000, (i) => long(-i - 1))
  const refused = (schema: Parameters<typeof checkInput>[0], value: unknown) =>
    cpuOf(() => expect(() => checkInput(schema, value)).toThrow('Invalid input'))
  const properties = { words: { type: 'array' as const, items } }
  expect(refused({ properties }, { words: wrong })).toBeLessThan(4000)
  const either = { words: { type: 'array' as const, items: { anyOf: [items, { type: 'integer' as const }] } } }
  expect(refused({ properties: either }, { words: wrong })).toBeLessThan(4000)
  const closed = { properties: Object.fromEntries(values.map((name) => [name, {}])), additionalProperties: false }
  expect(refused(closed, Object.fromEntries(wrong.map((name) => [name, 1])))).toBeLessThan(4000)
})
