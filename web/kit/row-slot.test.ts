import { expect, test } from 'vitest'
import { rowSlot } from './row-slot.ts'

const slots = (from: number, shown: number) => Array.from({ length: shown }, (_, i) => rowSlot(from + i, shown))

test('rows that are shown together have slots of their own, however many they are', () => {
  for (const shown of [1, 40, 64, 65, 200]) {
    for (const from of [0, 1, 63, 64, 9_999]) expect(new Set(slots(from, shown)).size).toBe(shown)
  }
})

test('a row that stays keeps its slot, and a row that comes takes one that was left', () => {
  const before = slots(1000, 40)
  const after = slots(1003, 40)
  expect(after.slice(0, 37)).toEqual(before.slice(3))
  expect(slots(1064, 40)).toEqual(before)
})
