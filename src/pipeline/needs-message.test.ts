import { expect, test } from 'vitest'
import { needsMessage } from './needs-message.ts'
import { parsePipeline } from './parse.ts'

const parse = (steps: string) => parsePipeline(`workflow:\n${steps}`)
const llm = (messages: string) => `{ id: a, type: llm, config: { model: "demo:assistant", messages: ${messages} } }`
const writer = parse(`  - ${llm('"$input.messages"')}`)

test.each([
  ['{ id: a, type: llm, config: { model: "demo:assistant" } }', true],
  [llm('"$input.messages"'), true],
  [llm('"$input.messages?"'), false],
  [llm('"$input.plan?"'), false],
  [`{ id: p, type: parallel, config: { branches: { x: [${llm('"$input.messages"')}] } } }`, true],
  [`{ id: c, type: condition, config: { if: "$input.fast?", then: [${llm('"$input.messages"')}] } }`, false],
  [
    `{ id: c, type: condition, config: { if: "not empty $input.messages", then: [${llm('"$input.messages?"')}] } }`,
    true,
  ],
  [`{ id: l, type: loop, config: { over: "$input.cities", steps: [${llm('"$input.messages"')}] } }`, false],
  ['{ id: w, type: call-agent, config: { agent: writer } }', true],
  ['{ id: w, type: call-agent, config: { agent: writer, input: { messages: "hi" } } }', false],
  ['{ id: w, type: call-agent, config: { agent: writer, input: { messages: "$input.messages" } } }', true],
])('%s: %s', (step, expected) => {
  expect(needsMessage(parse(`  - ${step}`), (agent) => (agent === 'writer' ? writer : undefined))).toBe(expected)
})
