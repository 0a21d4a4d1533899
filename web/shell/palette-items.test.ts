import { expect, test } from 'vitest'
import { matchItems, pastedId, type PaletteItem } from './palette-items.ts'

const items: PaletteItem[] = [
  { id: '1', group: 'Go to', label: 'Runs' },
  { id: '2', group: 'Agents', label: 'writer', hint: 'Writes drafts' },
  { id: '3', group: 'Runs', label: 'What is 12*7?', hint: 'assistant · completed' },
  { id: '4', group: 'Do', label: 'New chat' },
]
const found = (query: string) => matchItems(items, query).map(({ id }) => id)

test('every word must be there, and labels come before what stands behind them', () => {
  expect(found('')).toEqual(['1', '2', '3', '4'])
  expect(found('run')).toEqual(['1', '3'])
  expect(found('DRAFT write')).toEqual(['2'])
  expect(found('12*7 completed')).toEqual(['3'])
  expect(found('wr nothing')).toEqual([])
  expect(found('.*')).toEqual([])
})

test.each([
  ['run_0123456789abcdef', { kind: 'run', id: 'run_0123456789abcdef' }],
  ['  run_0123456789 ', { kind: 'run', id: 'run_0123456789' }],
  ['http://127.0.0.1:3000/runs/run_0123456789?at=4', { kind: 'run', id: 'run_0123456789' }],
  ['thread_0123456789', { kind: 'thread', id: 'thread_0123456789' }],
  ['run_12', undefined],
  ['run 0123456789', undefined],
])('%s', (query, id) => expect(pastedId(query)).toEqual(id))
