import { expect, test } from 'vitest'
import { createRowSlots, type RowSlots } from './row-slots.ts'

function place(slots: RowSlots, first: number, shown: number): number[] {
  const slotOf = slots.place(first, shown)
  return Array.from({ length: shown }, (_, i) => slotOf(first + i))
}

test('rows that are shown together have keys of their own, wherever one scrolls to and however many they are', () => {
  const slots = createRowSlots()
  for (const first of [0, 1, 39, 40, 5000, 4990, 9_999, 0]) {
    for (const shown of [1, 40, 39, 41, 200, 0]) expect(new Set(place(slots, first, shown)).size).toBe(shown)
  }
})

test('a row that stays keeps its key, and one that comes takes the key of one that has left', () => {
  const slots = createRowSlots()
  const before = place(slots, 1000, 40)
  const after = place(slots, 1003, 40)
  expect(after.slice(0, 37)).toEqual(before.slice(3))
  expect(after.slice(37)).toEqual(before.slice(0, 3))
  expect(place(slots, 1003, 40)).toEqual(after)
  // Also when fewer are shown for a moment.
  expect(place(slots, 1003, 39)).toEqual(after.slice(0, 39))
})

test('when all rows are others, they take all keys in the order in which they are', () => {
  const slots = createRowSlots()
  place(slots, 1000, 40)
  const before = place(slots, 1003, 40)
  expect(place(slots, 5017, 40)).toEqual(before)
  expect(place(slots, 3, 40)).toEqual(before)
})
