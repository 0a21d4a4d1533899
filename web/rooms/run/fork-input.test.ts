import { expect, test } from 'vitest'
import { forkInput, lastMessage } from './fork-input.ts'

const file = { type: 'file', mediaType: 'image/png', data: 'AAAA' }
const given = {
  city: 'Rome',
  messages: [
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: 'Hi.' },
    { role: 'user', content: [{ type: 'text', text: 'And this?' }, file] },
  ],
}

test('a new message takes the place of the last one of the user, with its files', () => {
  expect(lastMessage(given)).toBe('And this?')
  expect(forkInput(given, '', ' What is it? ')).toEqual({
    messages: [...given.messages.slice(0, 2), { role: 'user', content: [{ type: 'text', text: 'What is it?' }, file] }],
  })
  expect(forkInput({ messages: [{ role: 'user', content: 'Hello' }] }, '{"city":"Oslo"}', 'Bye')).toEqual({
    city: 'Oslo',
    messages: [{ role: 'user', content: 'Bye' }],
  })
})

test('nothing written is nothing sent; a run without messages has none to replace', () => {
  expect(forkInput(given, ' ', '')).toBeUndefined()
  expect(forkInput(given, '{}', '')).toBeUndefined()
  expect(lastMessage({ city: 'Rome' })).toBeUndefined()
  expect(forkInput({ city: 'Rome' }, '', 'Hi')).toEqual({ messages: [{ role: 'user', content: 'Hi' }] })
})

test.each([
  ['{', 'is not JSON'],
  ['[1]', 'must be an object'],
  ['{"messages": "Hi"}', 'must be a list'],
])('%s is refused with what is wrong', (json, fault) => {
  expect(() => forkInput(given, json, 'x')).toThrow(fault)
})
