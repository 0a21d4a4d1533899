import { expect, test } from 'vitest'
import type { WholePrompt } from '../../../src/fold/whole-prompt.ts'
import type { Message } from '../../../src/part/message.ts'
import { differingNames, promptParts } from './prompt-parts.ts'

const user = (content: string): Message => ({ role: 'user', content })
const prompt = (messages: Message[], more: Partial<WholePrompt> = {}): WholePrompt => ({
  step: 'main/answer/1',
  seq: 3,
  stage: 'response',
  model: 'demo:m',
  messages,
  ...more,
})

test('what is the same, what has other words, and what only one has', () => {
  const a = prompt([user('Hello'), user('What is 12*7?')], { system: 'Be kind.', settings: { temperature: 0 } })
  const b = prompt([user('Hello'), user('What is 12*8?'), user('Quick!')], { system: 'Be brief.' })
  const parts = promptParts(a, b)
  expect(parts).toEqual([
    { name: 'model', a: 'demo:m', b: 'demo:m' },
    { name: 'settings', a: 'temperature: 0' },
    { name: 'system', a: 'Be kind.', b: 'Be brief.' },
    { name: 'user', a: 'Hello', b: 'Hello' },
    { name: 'user', a: 'What is 12*7?', b: 'What is 12*8?' },
    { name: 'user', b: 'Quick!' },
  ])
  expect(differingNames(parts)).toEqual(['settings', 'system', 'user'])
})

test('calls and results are written without their ids, and tools are paired by name', () => {
  const loop = (id: string, value: unknown): Message[] => [
    user('Go'),
    { role: 'assistant', content: [{ type: 'tool-call', toolCallId: id, toolName: 'calc', input: { x: 1 } }] },
    {
      role: 'tool',
      content: [{ type: 'tool-result', toolCallId: id, toolName: 'calc', output: { type: 'json', value } }],
    },
  ]
  const tool = (name: string, description: string) => ({ name, description, inputSchema: {} })
  const a = prompt(loop('x', 84), { tools: [tool('calc', 'Counts.'), tool('time', 'The time.')] })
  const b = prompt(loop('y', 85), { tools: [tool('time', 'The time.'), tool('calc', 'Counts well.')] })
  const parts = promptParts(a, b)
  expect(differingNames(parts)).toEqual(['tool', 'tool calc'])
  expect(parts.find(({ name }) => name === 'assistant')).toEqual({
    name: 'assistant',
    a: 'calc({"x":1})',
    b: 'calc({"x":1})',
  })
  expect(parts.find(({ name }) => name === 'tool')).toEqual({ name: 'tool', a: 'calc → 84', b: 'calc → 85' })
})

test('a call that only one has made', () => {
  expect(promptParts(undefined, prompt([user('Hi')]))).toEqual([
    { name: 'model', b: 'demo:m' },
    { name: 'user', b: 'Hi' },
  ])
})
