import { expect, test } from 'vitest'
import { withFix } from './with-fix.ts'

test('puts the word in place, and nothing where there is no place', () => {
  const at = { line: 2, column: 9, message: 'm' }
  const fix = { line: 2, column: 9, length: 4, text: 'calculator' }
  expect(withFix('a:\n  tool: calc # x\n', { ...at, fix })).toBe(
    'a:\n  tool: calculator # x\n'.replace('tool: calculator', 'tool: calculator'),
  )
  expect(withFix('a:\n', { ...at, fix: { ...fix, line: 9 } })).toBe('a:\n')
  expect(withFix('a:\n', at)).toBe('a:\n')
})
