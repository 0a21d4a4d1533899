import { expect, test } from 'vitest'
import { clampSize, nextSize } from './pane-size.ts'

test('a pane is never smaller than its least, and leaves room for the main one', () => {
  expect([clampSize(50, 200, 1000), clampSize(300, 200, 1000), clampSize(5000, 200, 1000)]).toEqual([200, 300, 800])
  expect(clampSize(300, 200, 500)).toBe(300)
  expect(clampSize(500, 200, 500)).toBe(340)
  expect(clampSize(500, 200, 100)).toBe(200)
})

test('the arrow that points at the main pane makes it larger', () => {
  expect(nextSize('ArrowLeft', 'right', 300, 200, 1000)).toBe(316)
  expect(nextSize('ArrowRight', 'right', 300, 200, 1000)).toBe(284)
  expect(nextSize('ArrowRight', 'left', 300, 200, 1000)).toBe(316)
  expect(nextSize('ArrowUp', 'bottom', 300, 200, 1000)).toBe(316)
  expect(nextSize('Home', 'right', 300, 200, 1000)).toBe(200)
  expect(nextSize('End', 'right', 300, 200, 1000)).toBe(800)
  expect(nextSize('ArrowUp', 'right', 300, 200, 1000)).toBeUndefined()
  expect(nextSize('constructor', 'right', 300, 200, 1000)).toBeUndefined()
})
