import { describe, expect, test } from 'vitest'
import { titleOf } from './run-row.ts'

describe('run title', () => {
  test('a title is one line of words: no white space, no terminal escapes', () => {
    const content = '  Hello\n\tthere\u001b[2J\u0007 Ada '
    expect(titleOf({ messages: [{ role: 'user', content }] })).toBe('Hello there [2J Ada')
  })
})

test('a run without a message is called by its other values', () => {
  const state = { tools: [{}], context: [], state: { a: 1 }, empty: ' ' }
  expect(titleOf({ ...state, messages: [], city: 'Rome', days: 3, cheap: true })).toBe('city Rome, days 3, cheap true')
  expect(titleOf({ city: 'Rome', messages: [{ role: 'user', content: 'Plan it' }] })).toBe('Plan it')
  expect([titleOf({}), titleOf({ text: 'x'.repeat(5000) }).length]).toEqual(['', 120])
})
