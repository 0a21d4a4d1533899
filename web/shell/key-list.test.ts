import { expect, test } from 'vitest'
import type { KeyGroup } from './key-chords.ts'
import { keyList } from './key-list.ts'

const run = () => undefined

test('each thing to do once, with every key for it; a key of the room is not that of the page', () => {
  const next = { label: 'Next run', run }
  const groups: KeyGroup[] = [
    { name: 'List', keys: { j: next, ArrowDown: next, '/': { label: 'Find in the list', run } } },
    { name: 'Everywhere', keys: { 'Mod+k': { label: 'Find', run }, '/': { label: 'Find', run } } },
    { name: 'Taken', keys: { j: { label: 'Jump', run } } },
  ]
  expect(keyList(groups)).toEqual([
    {
      name: 'List',
      lines: [
        { label: 'Next run', chords: ['j', 'ArrowDown'] },
        { label: 'Find in the list', chords: ['/'] },
      ],
    },
    { name: 'Everywhere', lines: [{ label: 'Find', chords: ['Mod+k'] }] },
  ])
})
