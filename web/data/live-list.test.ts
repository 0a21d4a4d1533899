import { expect, test } from 'vitest'
import { firstPage, shown, withChanges, without, withPage, type LiveList, type ListRules } from './live-list.ts'

interface Row {
  id: string
  at: number
  word?: string
}

const rules: ListRules<Row> = { isWanted: ({ word }) => word !== 'other', compare: (a, b) => b.at - a.at }
const row = (at: number, word?: string): Row => ({ id: `r${at}`, at, ...(word === undefined ? undefined : { word }) })
const ids = ({ rows, waiting }: LiveList<Row>) => [rows, waiting].map((each) => each.map(({ id }) => id).join(' '))

test('a known row changes in its place, also if it does not fit the filter any more', () => {
  const list = withChanges(firstPage([row(3), row(2), row(1)], 3), [row(2, 'other')], rules, true)
  expect(ids(list)).toEqual(['r3 r2 r1', ''])
  expect(list.rows[1]!.word).toBe('other')
})

test('in a list that is sorted by what changes, a row goes to its place while the reader is at the top', () => {
  const sorted = { ...rules, compare: (a: Row, b: Row) => (b.word ?? '').length - (a.word ?? '').length, moves: true }
  const list = firstPage([row(3, 'ccc'), row(2, 'bb'), row(1)], 50)
  expect(ids(withChanges(list, [row(1, 'dddd')], sorted, false))).toEqual(['r3 r2 r1', ''])
  expect(ids(withChanges(list, [row(1, 'dddd')], sorted, true))).toEqual(['r1 r3 r2', ''])
  expect(ids(withChanges(list, [row(9, 'e')], sorted, true))).toEqual(['r3 r2 r9 r1', ''])
})

test('new rows wait while the reader is elsewhere, and are shown in their order', () => {
  let list = withChanges(firstPage([row(5), row(3)], 50), [row(6), row(4), row(7, 'other')], rules, false)
  expect(ids(list)).toEqual(['r5 r3', 'r6 r4'])
  list = withChanges(list, [row(6, 'changed'), row(8)], rules, false)
  expect(ids(list)).toEqual(['r5 r3', 'r8 r6 r4'])
  expect(list.waiting[1]!.word).toBe('changed')
  expect(ids(shown(list, rules))).toEqual(['r8 r6 r5 r4 r3', ''])
})

test('at the top new rows are shown at once', () => {
  expect(ids(withChanges(firstPage([row(1)], 50), [row(2)], rules, true))).toEqual(['r2 r1', ''])
  expect(ids(withChanges(firstPage<Row>([], 50), [row(2)], rules, true))).toEqual(['r2', ''])
})

test('rows of pages that are not loaded yet come with their page, once', () => {
  let list = withChanges(firstPage([row(9), row(8)], 2), [row(3)], rules, true)
  expect(ids(list)).toEqual(['r9 r8', ''])
  list = withPage(list, [row(8), row(3)], 2)
  expect(ids(list)).toEqual(['r9 r8 r3', ''])
  expect(list.hasMore).toBe(true)
  expect(withPage(list, [row(1)], 2).hasMore).toBe(false)
})

test('more new rows than are kept ask for the list again', () => {
  const many = Array.from({ length: 300 }, (_, i) => row(i + 10))
  const list = withChanges(firstPage([row(1)], 50), many, rules, false)
  expect([list.waiting.length, list.isOutrun, list.rows.length]).toEqual([200, true, 1])
})

test('a row that is gone is gone from both', () => {
  const list = withChanges(firstPage([row(2), row(1)], 50), [row(3)], rules, false)
  expect(ids(without(without(list, 'r3'), 'r1'))).toEqual(['r2', ''])
})
