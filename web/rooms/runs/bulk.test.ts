import { expect, test } from 'vitest'
import { MillraceError } from '../../../src/part/error.ts'
import type { RunRow } from '../../../src/part/log.ts'
import { forEach, isKept, splitFor } from './bulk.ts'
import { rangeOf, withToggled } from './useMarks.ts'

const never = new AbortController().signal
const row = (id: string, more: Partial<RunRow> = {}) => ({ id, status: 'completed', ...more }) as RunRow

test('a few at a time; what fails is told, and stops no other', async () => {
  let atOnce = 0
  let most = 0
  const seen: number[] = []
  const ids = Array.from({ length: 11 }, (_, i) => `r${i}`)
  const work = async (id: string) => {
    most = Math.max(most, ++atOnce)
    await Promise.resolve()
    atOnce--
    if (id === 'r3') throw new Error('no')
  }
  const result = await forEach(ids, work, { onProgress: (n) => seen.push(n), signal: never })
  expect(result.failed).toEqual([{ id: 'r3', message: 'no' }])
  expect(result.done.length).toBe(10)
  expect([most, seen.at(-1)]).toEqual([4, 11])
})

test('what is kept by others goes after them, once', async () => {
  const gone: string[] = []
  const work = async (id: string) => {
    const isFree = id === 'fork' || (id === 'source' && gone.includes('fork'))
    if (!isFree) throw new MillraceError('run-kept', `Forks share the log of ${id}`)
    gone.push(id)
  }
  const result = await forEach(['other', 'source', 'fork'], work, { onProgress() {}, signal: never, isRetried: isKept })
  expect(result.done).toEqual(['fork', 'source'])
  expect(result.failed).toEqual([{ id: 'other', message: 'Forks share the log of other' }])
})

test('what has not begun when it is ended stays as it is', async () => {
  const end = new AbortController()
  const work = async () => end.abort()
  const { done } = await forEach(['a', 'b', 'c', 'd', 'e', 'f'], work, { onProgress() {}, signal: end.signal })
  expect(done.length).toBeLessThan(6)
})

test('only what goes on is stopped, only what is over and one’s own is deleted', () => {
  const marks = new Map([
    ['on', row('on', { status: 'running' })],
    ['waits', row('waits', { status: 'suspended' })],
    ['over', row('over', { owner: 'ann' })],
    ['theirs', row('theirs', { owner: 'bob' })],
    ['unknown', undefined],
  ])
  const mayDelete = (owner: string | undefined) => owner === 'ann'
  expect(splitFor('stop', marks, mayDelete)).toEqual({ wanted: ['on', 'waits', 'unknown'], left: 2 })
  expect(splitFor('delete', marks, mayDelete)).toEqual({ wanted: ['over', 'unknown'], left: 3 })
  expect(splitFor('export', marks, mayDelete).left).toBe(0)
})

test('a range is marked in either direction, and a mark is taken away', () => {
  const rows = ['a', 'b', 'c', 'd'].map((id) => row(id))
  const ids = (from: string | undefined, to: string) => rangeOf(rows, from, to).map(({ id }) => id)
  expect([ids('b', 'd'), ids('d', 'b'), ids('gone', 'b'), ids(undefined, 'b')]).toEqual([
    ['b', 'c', 'd'],
    ['b', 'c', 'd'],
    [],
    [],
  ])
  const marks = withToggled(new Map(), rows[1]!, [])
  expect([...withToggled(marks, rows[3]!, rangeOf(rows, 'b', 'd')).keys()]).toEqual(['b', 'c', 'd'])
  expect(withToggled(marks, rows[1]!, []).size).toBe(0)
})
