import { expect, test } from 'vitest'
import { withFix } from './with-fix.ts'

test('puts the word in place, and nothing where there is no place', () => {
  const fix = { line: 2, column: 9, length: 4, text: 'calculator' }
  expect(withFix('a:\n  tool: calc # x\n', { message: 'm', fix })).toBe(
    'a:\n  tool: calculator # x\n'.replace('tool: calculator', 'tool: calculator'),
  )
  expect(withFix('a:\n', { message: 'm', fix: { ...fix, line: 9 } })).toBe('a:\n')
  expect(withFix('a:\n', { message: 'm' })).toBe('a:\n')
})
