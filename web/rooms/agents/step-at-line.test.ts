import { expect, test } from 'vitest'
import { stepAtLine } from './step-at-line.ts'

const tree = {
  workflow: [
    { id: 'a', type: 'loop', line: 3, lists: [{ name: 'steps', steps: [{ id: 'b', type: 'llm', line: 8 }] }] },
    { id: 'c', type: 'llm', line: 12 },
  ],
  after: [{ id: 'd', type: 'memory', line: 20 }],
}

test.each([
  [1, undefined],
  [3, 'a'],
  [7, 'a'],
  [8, 'b'],
  [11, 'b'],
  [15, 'c'],
  [99, 'd'],
])('line %i is in %s', (line, id) => expect(stepAtLine(tree, line)?.id).toBe(id))
