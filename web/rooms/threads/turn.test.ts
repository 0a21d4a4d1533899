import { expect, test } from 'vitest'
import type { Message } from '../../../src/part/message.ts'
import { saidIn } from './turn.ts'

const answer: Message[] = [
  {
    role: 'assistant',
    content: [
      { type: 'reasoning', text: 'hm' },
      { type: 'text', text: '' },
      { type: 'tool-call', toolCallId: 'c', toolName: 'calc', input: { x: 1 } },
    ],
  },
  {
    role: 'tool',
    content: [{ type: 'tool-result', toolCallId: 'c', toolName: 'calc', output: { type: 'error-text', value: 'no' } }],
  },
  { role: 'assistant', content: 'Done.' },
]

test('a call has its result, and empty texts are left out', () => {
  expect(saidIn([{ role: 'user', content: 'Go' }], answer, false)).toEqual([
    { kind: 'user', text: 'Go' },
    { kind: 'reasoning', text: 'hm' },
    { kind: 'tool', id: 'c', name: 'calc', input: { x: 1 }, output: 'no', isError: true },
    { kind: 'text', text: 'Done.' },
  ])
})

test('what was sent into the turn stands where it was told', () => {
  const told = [...answer.slice(0, 2), { role: 'user' as const, content: 'Shorter' }, ...answer.slice(2)]
  const texts = saidIn([{ role: 'user', content: 'Go' }], told, false).filter(({ kind }) => kind !== 'reasoning')
  expect(texts.map((each) => ('text' in each ? `${each.kind} ${each.text}` : each.kind))).toEqual([
    'user Go',
    'tool',
    'user Shorter',
    'text Done.',
  ])
})

test('of a whole conversation only the last question is new', () => {
  const input = [
    { role: 'user', content: 'one' },
    { role: 'assistant', content: '1' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'two' },
        { type: 'file', mediaType: 'image/png', data: '' },
      ],
    },
  ]
  expect(saidIn(input, [], true)).toEqual([
    { kind: 'user', text: 'two' },
    { kind: 'file', name: 'image/png' },
  ])
  expect(saidIn('no messages', [], false)).toEqual([])
})
