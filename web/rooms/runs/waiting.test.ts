import { expect, test } from 'vitest'
import type { EntryOf } from '../../../src/part/entry.ts'
import type { RunRow } from '../../../src/part/log.ts'
import { withRequests } from './useWaiting.ts'

const run = (id: string) => ({ id }) as RunRow
const request = (requestId: string) => ({ requestId }) as EntryOf<'request'>

test('a request that is done stays in its place; new ones come last', () => {
  let waiting = withRequests([], run('a'), [request('1'), request('2')])
  waiting = withRequests(waiting, run('b'), [request('1')])
  waiting = withRequests(waiting, run('a'), [request('2'), request('3')])
  expect(waiting.map((each) => `${each.run.id}${each.request.requestId}${each.isDone ? ' done' : ''}`)).toEqual([
    'a1 done',
    'a2',
    'b1',
    'a3',
  ])
})
