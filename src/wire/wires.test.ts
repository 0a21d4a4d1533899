import { expect, test } from 'vitest'
import { wires } from './wires.ts'

test('every wire is listed by its own name', () => {
  const list = Object.entries(wires)
  expect(list.length).toBeGreaterThanOrEqual(4)
  for (const [name, wire] of list) expect(wire.name).toBe(name)
})
