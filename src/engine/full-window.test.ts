/** Where a summary ends: never between a call and its result, never within the last round, and the first message stays. */
import { expect, test } from 'vitest'
import { estimateMessages } from '../models/estimate-tokens.ts'
import type { Message } from '../part/message.ts'
import { randomOf } from '../../test/support/random.ts'
import { cutOf } from './full-window.ts'

const words = (n: number) => 'word '.repeat(n)
const round = (i: number, size: number): Message[] => [
  { role: 'assistant', content: [{ type: 'tool-call', toolCallId: `c${i}`, toolName: 'look', input: {} }] },
  {
    role: 'tool',
    content: [
      { type: 'tool-result', toolCallId: `c${i}`, toolName: 'look', output: { type: 'text', value: words(size) } },
    ],
  },
]

test('it keeps the newest tokens, from a whole round on', () => {
  const messages: Message[] = [
    { role: 'user', content: 'Task' },
    ...Array.from({ length: 10 }, (_, i) => round(i, 100)).flat(),
  ]
  const cut = cutOf(messages, 1, 300)!
  expect(messages[cut]!.role).toBe('assistant')
  expect(estimateMessages(messages.slice(cut))).toBeLessThanOrEqual(300)
  expect(estimateMessages(messages.slice(cut - 2))).toBeGreaterThan(300)
})

test('the last round stays, however long it is, with what was said behind it', () => {
  const said: Message = { role: 'user', content: words(500) }
  const messages: Message[] = [{ role: 'user', content: 'Task' }, ...round(1, 10), ...round(2, 5000), said]
  expect(cutOf(messages, 1, 0)).toBe(3)
  expect(cutOf(messages.slice(0, 5), 1, 0)).toBe(3)
  // There is nothing before it.
  expect(cutOf([messages[0]!, ...round(2, 5000)], 1, 0)).toBeUndefined()
  expect(cutOf([messages[0]!], 1, 0)).toBeUndefined()
})

test('a question stays when the answers before it go', () => {
  const messages: Message[] = [
    { role: 'user', content: 'One' },
    { role: 'assistant', content: words(500) },
    { role: 'user', content: 'Two' },
  ]
  expect(cutOf(messages, 1, 0)).toBe(2)
})

test('whatever the conversation, the rest is a legal one', () => {
  const next = randomOf(7)
  const int = (below: number) => Math.floor(next() * below)
  for (let n = 0; n < 500; n++) {
    const messages: Message[] = [{ role: 'user', content: 'Task' }]
    const turns = 1 + int(12)
    for (let i = 0; i < turns; i++) {
      const kind = int(4)
      if (kind < 2) messages.push(...round(i, int(200)))
      else if (kind === 2) messages.push({ role: 'assistant', content: words(int(200)) })
      if (kind === 3 || int(3) === 0) messages.push({ role: 'user', content: words(1 + int(100)) })
    }
    const from = 1 + int(messages.length)
    const cut = cutOf(messages, from, int(500))
    if (cut === undefined) continue
    expect(cut).toBeGreaterThan(from)
    expect(messages[cut]!.role).not.toBe('tool')
  }
})
