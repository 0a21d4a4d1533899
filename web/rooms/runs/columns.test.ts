import { expect, test } from 'vitest'
import { gridOf, readColumns, shownColumns, writeColumns } from './columns.ts'

const ids = (text: string | undefined, width: number, hasOwners = false) =>
  shownColumns(readColumns(text), width, hasOwners)
    .map(({ id }) => id)
    .join(' ')

test('the usual columns at each width: what has no room goes, the least wanted first', () => {
  expect(ids(undefined, 1380)).toBe('status agent words error started took first tokens cost thread')
  expect(ids(undefined, 1380, true)).toContain('agent user words')
  expect(ids(undefined, 1000)).toBe('status agent words error started took first tokens cost')
  expect(ids(undefined, 720)).toBe('status agent words started took cost')
  expect(ids(undefined, 390)).toBe('status words started')
  expect(ids(undefined, 100)).toBe('words')
})

test('an address names columns, in any order; the words are always there, and unknown names are not', () => {
  expect(ids('cost,model,verdict', 1380)).toBe('words cost model verdict')
  expect(ids('nonsense', 1380)).toBe(ids(undefined, 1380))
  expect(writeColumns(['cost', 'words'])).toBe('words,cost')
  expect(readColumns(writeColumns(['cost', 'words']))).toEqual(['words', 'cost'])
  const usual = 'thread,status,agent,user,words,error,started,took,first,tokens,cost'
  expect(writeColumns(readColumns(usual)!)).toBeUndefined()
})

test('errors say more where there is room', () => {
  const [wide, small] = [1380, 1000].map((width) => gridOf(shownColumns(undefined, width, false), width))
  expect(wide).toContain('minmax(44px, 2fr)')
  expect(small).not.toContain('2fr')
})
