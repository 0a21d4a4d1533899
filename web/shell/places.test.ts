import { expect, test } from 'vitest'
import { nameInPath, placesOf, windowTitle } from './places.ts'

test.each([
  ['/', [{ label: 'Chat' }]],
  ['/chat/a%20b', [{ label: 'Chat', href: '/' }, { label: 'a b' }]],
  ['/chat/%E0', [{ label: 'Chat', href: '/' }, { label: '%E0' }]],
  ['/runs', [{ label: 'Runs' }]],
  ['/runs/run_0123456789', [{ label: 'Runs', href: '/runs' }, { label: '456789' }]],
  ['/threads/thread_0123456789%40%40acme%2Falice', [{ label: 'Threads', href: '/threads' }, { label: '456789' }]],
  ['/beside', [{ label: 'Chat', href: '/' }, { label: 'Side by side' }]],
  ['/compare', [{ label: 'Runs', href: '/runs' }, { label: 'Compare' }]],
  ['/nowhere', [{ label: 'No page' }]],
  ['/constructor', [{ label: 'No page' }]],
])('%s', (path, places) => expect(placesOf(path)).toEqual(places))

test('the title of the window begins with what is shown', () => {
  expect(windowTitle('/agents/writer')).toBe('writer · Agents · Millrace')
  expect(windowTitle('/runs/run_0123456789', 'What is 12*7?')).toBe('What is 12*7? · Runs · Millrace')
})

test.each(['a/b', 'a=b&c', '50%', 'a%3Db', '<b>', 'ü ?#'])('%s is what it was', (name) => {
  expect(nameInPath(`/threads/${encodeURIComponent(name)}`)).toBe(name)
})
