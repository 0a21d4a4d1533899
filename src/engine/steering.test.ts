import { expect, test } from 'vitest'
import type { EntryOf } from '../part/entry.ts'
import { nextRuns } from './steering.ts'

const message = (seq: number, id: string, runId?: string): EntryOf<'message'> => ({
  seq,
  timestamp: 0,
  step: '',
  type: 'message',
  id,
  content: id,
  protocol: 'api',
  sentAt: 0,
  ...(runId !== undefined && { outcome: 'next', runId }),
})
const entries = [message(4, 'a', 'one'), message(5, 'told'), message(8, 'b', 'two'), message(9, 'c', 'two')]
const idsOf = (runs: ReturnType<typeof nextRuns>) =>
  runs.map(({ runId, messages }) => [runId, messages.map(({ id }) => id)])

test('a run begins the next runs that its log names, each with its messages', () => {
  expect(idsOf(nextRuns({}, entries))).toEqual([
    ['one', ['a']],
    ['two', ['b', 'c']],
  ])
})

test.each([
  ['a fork', { forkedFrom: { runId: 'source', seq: 6 } }],
  ['a run that was recorded elsewhere', { foreign: 6 }],
])('%s begins none of the runs that belong to the log it shares', (_, start) => {
  expect(idsOf(nextRuns(start as Parameters<typeof nextRuns>[0], entries))).toEqual([['two', ['b', 'c']]])
})
