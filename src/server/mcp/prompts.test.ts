import { describe, expect, test } from 'vitest'
import { parsePipeline, PipelineError } from '../../pipeline/parse.ts'
import { getPrompt, listPrompts } from './prompts.ts'

const workflow = 'workflow:\n  - { id: answer, type: llm, config: { model: "demo:assistant" } }'

function agent(id: string, prompts: string, more = '') {
  const pipeline = parsePipeline(`metadata:\n${more}  prompts:\n${prompts}\n${workflow}`)
  return { id, pipeline }
}

const plan = `    - name: plan
      description: A plan for a trip
      arguments: { city: Where to go, days?: How long }
      text: "Plan {days} days in {city}, {\\"json\\": {city}} and {other}."`

const desk = agent('desk', plan, '  name: Desk\n')
const other = agent('a.desk', '    - { name: hi, text: "Say hi." }')

function faultsOf(prompts: string): string[] {
  try {
    agent('x', prompts)
    return []
  } catch (error) {
    return (error as PipelineError).faults.map(({ message }) => message)
  }
}

test('prompts are listed by name, with their arguments', () => {
  expect(listPrompts([desk, other])).toEqual([
    { name: 'a.desk.hi' },
    {
      name: 'desk.plan',
      title: 'Desk: plan',
      description: 'A plan for a trip',
      arguments: [
        { name: 'city', description: 'Where to go', required: true },
        { name: 'days', description: 'How long', required: false },
      ],
    },
  ])
})

describe('a prompt', () => {
  test('is a message of the user with the arguments in it, each as it is', () => {
    expect(getPrompt([desk, other], 'desk.plan', { city: '{days} $& Rome', days: '3' })).toEqual({
      description: 'A plan for a trip',
      messages: [
        {
          role: 'user',
          content: {
            type: 'text',
            text: 'Plan 3 days in {days} $& Rome, {"json": {days} $& Rome} and {other}.',
          },
        },
      ],
    })
    expect(JSON.stringify(getPrompt([desk], 'desk.plan', { city: 'Rome' }))).toContain('Plan  days in Rome')
    expect(getPrompt([desk, other], 'a.desk.hi')).toEqual({
      messages: [{ role: 'user', content: { type: 'text', text: 'Say hi.' } }],
    })
  })

  test.each([
    undefined,
    7,
    '',
    'plan',
    'desk',
    'desk.',
    '.plan',
    'desk.hi',
    'a.plan',
    'desk.plan.x',
    'desk.constructor',
  ])('is unknown by the name %j', (name) => expect(getPrompt([desk, other], name, {})).toEqual({ unknown: true }))

  test('is refused with all mistakes in its arguments', () => {
    expect(getPrompt([desk], 'desk.plan', { citi: 'Rome', days: 3 })).toEqual({
      faults: ['there is no argument "citi" (did you mean "city"?)', 'days must be a string', 'city is missing'],
    })
    expect(getPrompt([desk], 'desk.plan', [])).toEqual({ faults: ['arguments must be an object'] })
    expect(getPrompt([desk], 'desk.plan', JSON.parse('{"city":"x","__proto__":"y"}'))).toMatchObject({
      faults: [expect.stringContaining('__proto__')],
    })
  })
})

test.each([
  ['    - { text: hi }', 'missing key "name"; add it'],
  ['    - { name: a }', 'missing key "text"; add it'],
  ['    - { name: a.b, text: hi }', '"name" must contain only letters, digits, "-" and "_", not "a.b"'],
  ['    - { name: a, text: hi, argument: {} }', 'unknown key "argument" (did you mean "arguments"?); known keys'],
  ['    - { name: a, text: hi }\n    - { name: a, text: ho }', '"name" "a" is taken by another prompt'],
  ['    - { name: a, text: hi, arguments: { city: x } }', '"text" does not have the argument {city}'],
  ['    - { name: a, text: "{b}", arguments: { b: x, b?: x } }', '"arguments" has "b" twice'],
  ['    - { name: a, text: "{b c}", arguments: { b c: x } }', 'must consist of letters'],
])('the mistake in %s is reported', (prompts, fault) => {
  expect(faultsOf(prompts).join('\n')).toContain(fault)
})

test('the text of a prompt may stand in a file', () => {
  const text = `metadata:\n  prompts:\n    - { name: plan, arguments: { city: x }, text: { file: plan.md } }\n${workflow}`
  const { metadata, text: recorded } = parsePipeline(text, undefined, (path) => `From ${path}: {city}`)
  expect(metadata.prompts?.[0]?.text).toBe('From plan.md: {city}')
  expect(parsePipeline(recorded).metadata).toEqual(metadata)
})

test('an agent says how it is called by MCP', () => {
  expect(parsePipeline(`metadata: { mcp: { tasks: required, threads: true } }\n${workflow}`).metadata.mcp).toEqual({
    tasks: 'required',
    threads: true,
  })
  expect(() => parsePipeline(`metadata: { mcp: { tasks: nevr } }\n${workflow}`)).toThrow(/did you mean "never"/u)
})
