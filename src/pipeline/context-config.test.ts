/** `context` of a step: what it may say, and what `check` finds. */
import { expect, test } from 'vitest'
import { parsePipeline, PipelineError } from './parse.ts'
import type { Known, LlmConfig } from './pipeline.ts'

const known: Known = {
  stepTypes: [],
  tools: [],
  callbacks: [],
  providers: ['box', 'google'],
  hasDefaultModel: true,
  windows: ['box:known'],
}
const file = (context: string, more = 'model: "box:m"') =>
  `workflow:\n  - id: answer\n    type: llm\n    config:\n      ${more}\n      context: ${context}`

function faultsOf(text: string): string[] {
  try {
    parsePipeline(text, known)
    return []
  } catch (error) {
    if (!(error instanceof PipelineError)) throw error
    return error.faults.map(({ line, message }) => `${line}: ${message}`)
  }
}
const warningsOf = (text: string) => (parsePipeline(text, known).warnings ?? []).map(({ message }) => message)

test.each([
  ['{}', { summarizeAt: 0.75 }],
  [
    '{ window: 200k, summarizeAt: 60%, keep: 20k, summary: { model: "google:small", system: Short. } }',
    { window: 200_000, summarizeAt: 0.6, keep: 20_000, summary: { model: 'google:small', system: 'Short.' } },
  ],
  ['{ window: 1.5m, summarizeAt: none, keep: 0 }', { window: 1_500_000, summarizeAt: 'none', keep: 0 }],
  ['{ window: 32768 }', { window: 32_768, summarizeAt: 0.75 }],
])('%s', (text, expected) => {
  const [step] = parsePipeline(file(text), known).workflow
  expect((step as { config: LlmConfig }).config.context).toEqual(expected)
})

test('a router has it, too, and a file for the words of the summary', () => {
  const text = 'workflow: [{ id: r, type: router, config: { context: { summary: { system: { file: s.md } } } } }]'
  const pipeline = parsePipeline(text, known, () => 'As a list.\n')
  expect(pipeline.text).toContain('As a list.')
  expect(faultsOf(text).join()).toContain('s.md')
})

test.each([
  ['{ window: big }', '6: "window" must be a number of tokens such as 20000, 20k or 1m, from 1000, not "big"'],
  ['{ window: 500 }', '6: "window" must be a number of tokens such as 20000, 20k or 1m, from 1000, not "500"'],
  ['{ summarizeAt: 0.75 }', '6: "summarizeAt" must be a share from 10% to 95%, or none, not "0.75"'],
  ['{ summarizeAt: 100% }', '6: "summarizeAt" must be a share from 10% to 95%, or none, not "100%"'],
  [
    '{ windows: 8k }',
    '6: unknown key "windows" (did you mean "window"?); known keys: window, summarizeAt, keep, summary',
  ],
  ['{ window: 8k, keep: 8k }', '6: "keep" must be smaller than "window": 8000 tokens stay, and the window has 8000'],
  ['{ summary: { model: "bos:small" } }', /6: .*bos.*box/u],
])('%s is refused with its place and the cure', (text, fault) => {
  const [found = ''] = faultsOf(file(text))
  if (typeof fault === 'string') expect(found).toBe(fault)
  else expect(found).toMatch(fault)
})

test('a window that cannot hold the system message and "keep" is refused', () => {
  const system = `system: "${'You know all of this. '.repeat(1000)}"`
  const [found] = faultsOf(file('{ window: 4k, keep: 1k }', system))
  expect(found).toMatch(/the window of 4000 tokens is smaller than "system" \(about 4\d{3}\) and "keep" \(1000\)/u)
})

test('a share of a window that nobody knows is a warning', () => {
  const [warning] = warningsOf(file('{ summarizeAt: 60% }'))
  expect(warning).toContain('the window of the model is not known')
  expect(warning).toContain('models.windows')
  expect(warningsOf(file('{ summarizeAt: 60% }', 'model: "box:known"'))).toEqual([])
  expect(warningsOf(file('{ summarizeAt: 60%, window: 8k }'))).toEqual([])
  expect(warningsOf(file('{ summarizeAt: none }'))).toEqual([])
  expect(warningsOf(file('{}'))).toEqual([])
})
