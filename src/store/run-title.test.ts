import { describe, expect, test } from 'vitest'
import { titleOf } from './run-row.ts'

describe('run title', () => {
  test('a title is one line of words: no white space, no terminal escapes', () => {
    const content = '  Hello\n\tthere\u001b[2J\u0007 Ada '
    expect(titleOf({ messages: [{ role: 'user', content }] })).toBe('Hello there [2J Ada')
  })
})
