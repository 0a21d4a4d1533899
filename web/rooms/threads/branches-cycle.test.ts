import { expect, test } from 'vitest'
import type { RunRow } from '../../../src/part/log.ts'
import { branchOf } from './branches.ts'

const row = (id: string, previousRunId: string) => ({ id, previousRunId, startedAt: 1, lastSeq: 1 }) as RunRow

test.each<[string, RunRow[]]>([
  ['itself', [row('a', 'a')]],
  ['one that continues it', [row('a', 'b'), row('b', 'a')]],
  ['one of a circle', [row('a', 'b'), row('b', 'c'), row('c', 'b')]],
])('runs of which one continues %s are shown once each', (_, rows) => {
  const ids = branchOf(rows, 'a', () => false).map(({ run }) => run.id)
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids).toContain('a')
})
