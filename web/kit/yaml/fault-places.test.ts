import { expect, test } from 'vitest'
import { placesOfFaults } from './fault-places.ts'

const text = 'workflow:\n  - id: a  \n'

test.each([
  [{ line: 2, column: 5, message: 'm' }, 'id: a'],
  [{ line: 1, column: 1, message: 'm' }, 'workflow:'],
  [{ line: 99, column: 99, message: 'm' }, ''],
  [{ line: 2, column: 99, message: 'm' }, ''],
])('%j', (fault, written) => {
  const [{ from, to } = { from: -1, to: -1 }] = placesOfFaults(text, [fault])
  expect(text.slice(from, to)).toBe(written)
})
