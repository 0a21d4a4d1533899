import { expect, test } from 'vitest'
import type { RunRow } from '../../../src/part/log.ts'
import { branchOf } from './branches.ts'

const run = (id: string, startedAt: number, previousRunId?: string, agent = 'a') =>
  ({ id, startedAt, agent, lastSeq: 1, ...(previousRunId === undefined ? undefined : { previousRunId }) }) as RunRow
const shown = (rows: RunRow[], through?: string) =>
  branchOf(rows, through, (agent) => agent === 'client').map(
    ({ run: each, siblings }) => `${each.id} ${siblings.indexOf(each) + 1}/${siblings.length}`,
  )

const rows = [run('1', 1), run('2', 2, '1'), run('3', 3, '2'), run('2b', 4, '1'), run('3b', 5, '2b'), run('1b', 0.5)]

test('the newest run is shown with what it continues; another branch goes on to its newest run', () => {
  expect(shown(rows)).toEqual(['1 2/2', '2b 2/2', '3b 1/1'])
  expect(shown(rows, '2')).toEqual(['1 2/2', '2 1/2', '3 1/1'])
  expect(shown(rows, '1b')).toEqual(['1b 1/2'])
  expect(shown(rows, '1')).toEqual(['1 2/2', '2b 2/2', '3b 1/1'])
})

test('where clients keep the conversation, runs follow one another', () => {
  expect(shown([run('x', 1, undefined, 'client'), run('y', 2, undefined, 'client')])).toEqual(['x 1/1', 'y 1/1'])
})

test('a run whose previous one is gone begins the conversation; no runs, no turns', () => {
  expect(shown([run('7', 7, '6'), run('8', 8, '7')])).toEqual(['7 1/1', '8 1/1'])
  expect(shown([])).toEqual([])
})
