import { expect, test } from 'vitest'
import type { EntryOf } from '../../../src/part/entry.ts'
import type { RunRow } from '../../../src/part/log.ts'
import { withRequests } from './useWaiting.ts'

const run = (id: string) => ({ id }) as RunRow
const request = (requestId: string, timestamp: number) => ({ requestId, timestamp }) as EntryOf<'request'>

test('what has waited longest is first; what is done stays in its place; new ones come last', () => {
  let waiting = withRequests(
    [],
    [
      { run: run('b'), requests: [request('1', 30)] },
      { run: run('a'), requests: [request('1', 10), request('2', 40)] },
    ],
  )
  waiting = withRequests(waiting, [{ run: run('a'), requests: [request('2', 40), request('3', 20)] }])
  expect(waiting.map((each) => `${each.run.id}${each.request.requestId}${each.isDone ? ' done' : ''}`)).toEqual([
    'a1 done',
    'b1',
    'a2',
    'a3',
  ])
})
