/** Each kind of expectation is told in a line. */
import { expect, test } from 'vitest'
import { readCases } from '../../../src/regress/read-cases.ts'
import type { Expected } from '../../data/tests.ts'
import { linesOf } from './expectations.ts'

const told = (yaml: string) => {
  const { cases } = readCases(`agent: a\ncases:\n  - name: x\n    message: Hi\n    expect: ${yaml}\n`, 'x.yaml')
  return linesOf(cases[0]!.turns[0]!.expect as Expected).map(({ what, text }) =>
    text === undefined ? what : `${what}: ${text}`,
  )
}

test.each<[string, string[]]>([
  ['{}', ['The run completes']],
  ['{ outcome: failed }', ['The run ends as: failed']],
  ['{ error: bad-input }', ['The run fails with: bad-input']],
  ['{ text: { equals: "84" } }', ['The answer is exactly: 84']],
  [
    '{ text: { contains: [a, b], matches: "n\\\\d", not: { contains: sorry, equals: no } } }',
    [
      'The answer contains: a',
      'The answer contains: b',
      'The answer matches: /n\\d/',
      'The answer is not: no',
      'The answer does not contain: sorry',
    ],
  ],
  ['{ json: { $: 1, "a.b": [2] } }', ['The output is: 1', 'The output has at a.b: [2]']],
  [
    '{ tools: { only: true, inOrder: true, calls: [{ name: find }, { name: pay, input: { n: 1 }, times: 1 }, { name: rm, times: 0 }] } }',
    [
      'Calls the tool: find',
      'Calls the tool (once): pay {"n":1}',
      'Calls the tool (never): rm',
      'Calls no other tool',
      'In this order',
    ],
  ],
  ['{ steps: { ran: [a], skipped: [b] } }', ['The step runs: a', 'The step does not run: b']],
  [
    '{ budget: { tokens: 5, usd: 0.1, seconds: 3, steps: 2 } }',
    ['At most 5 tokens', 'At most $0.1', 'At most 3 s', 'At most 2 calls of models and tools'],
  ],
  [
    '{ judge: { agent: critic, threshold: 0.7, question: "Friendly?" } }',
    ['The agent critic gives at least 0.7: Friendly?'],
  ],
])('%s', (yaml, lines) => {
  expect(told(yaml)).toEqual(lines)
})
