import { expect, test } from 'vitest'
import { pathOf } from './branches.ts'

const runs = [
  { runId: 'a' },
  { runId: 'b', previousRunId: 'a' },
  { runId: 'c', previousRunId: 'b' },
  { runId: 'b2', previousRunId: 'a' },
]
const path = (tip?: string) => pathOf(runs, { tip, isLinear: false }).map(({ runId }) => runId)

test('the newest run is the end of what is shown, or the newest below the one that is asked for', () => {
  expect(path()).toEqual(['a', 'b2'])
  expect(path('b')).toEqual(['a', 'b', 'c'])
  expect(path('a')).toEqual(['a', 'b2'])
  expect(path('gone')).toEqual(['a', 'b2'])
  expect(pathOf(runs, { isLinear: false })[1]).toEqual({ runId: 'b2', siblings: ['b', 'b2'] })
})

test('a first message that was edited is a branch from the beginning', () => {
  expect(pathOf([...runs, { runId: 'a2' }], { isLinear: false })).toEqual([{ runId: 'a2', siblings: ['a', 'a2'] }])
})

test('a page of runs begins at the first that is known; rings end', () => {
  expect(pathOf(runs.slice(1), { tip: 'c', isLinear: false }).map(({ runId }) => runId)).toEqual(['b', 'c'])
  const ring = [
    { runId: 'x', previousRunId: 'y' },
    { runId: 'y', previousRunId: 'x' },
  ]
  expect(pathOf(ring, { tip: 'x', isLinear: false }).length).toBeLessThanOrEqual(2)
})

test('where the client keeps the history all runs follow each other', () => {
  expect(pathOf(runs, { isLinear: true }).map(({ runId }) => runId)).toEqual(['a', 'b', 'c', 'b2'])
})
