import { expect, test } from 'vitest'
import { MillraceError } from '../part/error.ts'
import { checkKey, createKeyCheck } from './key.ts'

const allows = createKeyCheck('sësame')

test.each(['Bearer sësame', 'bearer  sësame', 'BEARER\tsësame'])('%j is the key', (header) => {
  expect(allows(header)).toBe(true)
})

test.each([
  null,
  '',
  'sësame',
  'Bearer',
  'Bearer ',
  'Bearer s',
  'Bearer sësamé',
  'Bearer sësame ',
  'Bearer sësamesësame',
  'Bearer Sësame',
  'Basic sësame',
])('%j is not', (header) => {
  expect(allows(header)).toBe(false)
})

test('an empty key lets nobody in', () => {
  expect([null, '', 'Bearer ', 'Bearer x'].map(createKeyCheck(''))).toEqual([false, false, false, false])
})

test.each([
  ['secret\n', 'ends in a line break'],
  ['secret\r\n', 'ends in a line break'],
  ['sec\nret', 'must consist of'],
  ['sec ret', 'must consist of'],
  [' secret', 'must consist of'],
  ['sec\tret', 'must consist of'],
  ['sec\0ret', 'must consist of'],
  ['sëcret', 'must consist of'],
  ['\u{1f511}', 'must consist of'],
])('%j is refused before anybody is to send it, and is not repeated', (key, why) => {
  let error: unknown
  try {
    checkKey(key, 'MILLRACE_API_KEY')
  } catch (thrown) {
    error = thrown
  }
  expect(error).toBeInstanceOf(MillraceError)
  const { code, message } = error as MillraceError
  expect(code).toBe('bad-key')
  expect(message).toContain(`MILLRACE_API_KEY ${why}`)
  expect(message).not.toContain(key.trim())
})

test('a key of printable ASCII is fine', () => {
  expect(() => checkKey(`sk-Az09!#$%&'*+.^_\`|~-/=`, 'x')).not.toThrow()
})
