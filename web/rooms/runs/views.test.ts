import { expect, test } from 'vitest'
import { readViews, viewOf, withoutView, withView } from './views.ts'

test('a view is its address, without the selection; the same name replaces it', () => {
  const first = withView([], ' Dear ', '?sort=cost&sel=run_1&agent=a')
  expect(readViews(first)).toEqual([{ name: 'Dear', search: 'agent=a&sort=cost' }])
  const second = withView(readViews(withView(readViews(first), 'Slow', '?took=10s..')), 'Dear', '?sort=cost')
  expect(readViews(second).map(({ name }) => name)).toEqual(['Slow', 'Dear'])
  expect(readViews(withoutView(readViews(second), 'Slow'))).toEqual([{ name: 'Dear', search: 'sort=cost' }])
  expect(withoutView(readViews(first), 'Dear')).toBeUndefined()
  expect(viewOf('?b=1&a=2')).toBe(viewOf('?a=2&b=1&sel=x'))
})

test('what is no list of views is none', () => {
  for (const text of [undefined, 'no JSON', '{}', '[1, {"name": 2}, null]']) expect(readViews(text)).toEqual([])
})
