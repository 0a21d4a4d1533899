import { expect, test } from 'vitest'
import { createKeyCheck } from './key.ts'

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
