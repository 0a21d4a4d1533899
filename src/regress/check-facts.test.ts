import { describe, expect, test } from 'vitest'
import { checkFacts } from './check-facts.ts'
import { describeFailure } from './describe-failure.ts'
import type { Facts } from './facts.ts'
import { readCases } from './read-cases.ts'

const facts: Facts = {
  outcome: 'completed',
  text: 'Rome is warm.\nTake a hat.',
  output: { items: [{ price: 5, 'a key': null }], ok: true },
  tools: [
    { name: 'weather', input: { city: 'Rome', unit: 'C' } },
    { name: 'weather', input: { city: 'Oslo', unit: 'C' } },
    { name: 'pack', input: { things: ['hat'] } },
  ],
  steps: ['main/answer', 'main/answer/1', 'main/answer/2', 'main/team', 'main/team/0', 'main/team/0/writer'],
  calls: 5,
  usage: { totalTokens: 120, source: 'reported' },
  cost: 0.02,
  seconds: 1.5,
}

function failuresOf(expectation: string, given: Partial<Facts> = {}): string[] {
  const { cases } = readCases(`agent: a\ncases: [{ name: x, message: m, expect: ${expectation} }]`, 't.yaml')
  return checkFacts(cases[0]!.turns[0]!.expect, { ...facts, ...given }).map(describeFailure)
}

describe('checkFacts', () => {
  test.each([
    '{}',
    '{ text: Rome }',
    '{ text: { contains: [Rome, hat], matches: ["^Rome .* warm", "hat\\\\.$"], equals: "Rome is warm.\\nTake a hat.\\n" } }',
    '{ text: { not: { contains: Paris, matches: "^Take x", equals: Rome } } }',
    '{ json: { "items[0].price": 5, items.0.price: 5, "$.ok": true, \'items[0]["a key"]\': null } }',
    '{ tools: [{ name: pack }, { name: weather, times: 2 }, { name: weather, input: { city: Rome }, times: 1 }, { name: fly, times: 0 }] }',
    '{ tools: { inOrder: true, only: true, calls: [{ name: weather }, { name: weather, input: { city: Oslo } }, { name: pack, input: { things: [hat] } }] } }',
    '{ steps: [answer, team, writer, main/answer] }',
    '{ steps: { ran: [answer], skipped: [other, writ] } }',
    '{ budget: { tokens: 120, usd: 0.02, seconds: 1.5, steps: 5 } }',
  ])('%s holds', (expectation) => expect(failuresOf(expectation)).toEqual([]))

  test.each<[string, string, Partial<Facts>?]>([
    [
      '{}',
      'outcome: the run has failed (boom: It broke.)\n  - completed\n  + failed',
      { outcome: 'failed', error: { code: 'boom', message: 'It broke.' } },
    ],
    ['{ outcome: timed-out }', 'outcome: the run has completed\n  - timed-out\n  + completed'],
    [
      '{ error: other }',
      'error: the run has failed with another error (boom: It broke.)\n  - other\n  + boom',
      { outcome: 'failed', error: { code: 'boom', message: 'It broke.' } },
    ],
    ['{ text: Paris }', 'text: the answer does not contain "Paris"\n  - Paris\n  + Rome is warm.\n  + Take a hat.'],
    [
      '{ text: { matches: "^warm" } }',
      'text: the answer does not match /^warm/\n  - ^warm\n  + Rome is warm.\n  + Take a hat.',
    ],
    [
      '{ text: { equals: "Rome is cold.\\nTake a hat." } }',
      'text: the answer does not equal "Rome is cold.\\nTake a hat."\n  - Rome is cold.\n  + Rome is warm.\n    Take a hat.',
    ],
    [
      '{ text: { not: { contains: hat } } }',
      'text: the answer must not contain "hat"\n  + Rome is warm.\n  + Take a hat.',
    ],
    [
      '{ text: { not: { matches: "h.t" } } }',
      'text: the answer must not match /h.t/\n  + Rome is warm.\n  + Take a hat.',
    ],
    ['{ json: { "items[0].price": "5" } }', 'json: the output has another value at items[0].price\n  - "5"\n  + 5'],
    ['{ json: { "items[1]": 5 } }', 'json: the output has nothing at items[1]\n  - 5\n  + {'],
    ['{ json: { a: 5 } }', 'json: there is no output, and the answer is not JSON\n  - 5', { output: undefined }],
    ['{ tools: [{ name: fly }] }', 'tools: fly was not called\n  + ['],
    [
      '{ tools: [{ name: pack, input: { things: [coat] } }] }',
      'tools: pack was called with other arguments\n    {\n      "things": [\n  -     "coat"\n  +     "hat"',
    ],
    ['{ tools: [{ name: weather, times: 1 }] }', 'tools: weather was called 2 times, not once\n'],
    ['{ tools: [{ name: pack, times: 0 }] }', 'tools: pack was called once, not 0 times\n'],
    [
      '{ tools: { inOrder: true, calls: [{ name: pack }, { name: weather }] } }',
      'tools: weather was called too early\n',
    ],
    ['{ tools: { only: true, calls: [{ name: weather }] } }', 'tools: other tools were called: pack\n'],
    ['{ steps: [missing] }', 'steps: the step missing has not run\n'],
    ['{ steps: { skipped: [writer] } }', 'steps: the step writer has run\n'],
    ['{ budget: { tokens: 119 } }', 'budget: the run took 120 tokens, more than 119\n  - 119\n  + 120'],
    ['{ budget: { usd: 0.01 } }', 'budget: the run took 0.02 USD, more than 0.01\n'],
    [
      '{ budget: { usd: 0.01 } }',
      'budget: the cost is unknown: add the price of the model to "pricing" in the config',
      { cost: undefined },
    ],
    ['{ budget: { seconds: 1 } }', 'budget: the run took 1.5 seconds, more than 1\n'],
    ['{ budget: { steps: 4 } }', 'budget: the run took 5 model and tool calls, more than 4\n'],
  ])('%s fails: %s', (expectation, message, given) => {
    const failures = failuresOf(expectation, given)
    expect(failures).toHaveLength(1)
    expect(failures[0]).toContain(message)
  })

  test('every failure is told, not only the first', () => {
    expect(failuresOf('{ text: Paris, steps: [missing], budget: { tokens: 1, steps: 1 } }')).toHaveLength(4)
  })
})
