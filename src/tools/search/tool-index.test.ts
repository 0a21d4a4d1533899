import { expect, test } from 'vitest'
import { catalogue, queries, worded } from './testing/catalogue.ts'
import { createToolIndex } from './tool-index.ts'

const index = createToolIndex(catalogue)
const missed = (most: number, of: typeof queries) =>
  of.filter(([query, tool]) => !index.find(query, most).includes(tool))

test('the right one of 500 tools is among the first eight for 95 of 100 queries', () => {
  expect([catalogue.length, queries.length]).toEqual([500, 100])
  const names = new Set(catalogue.map(({ name }) => name))
  expect(queries.filter(([, tool]) => !names.has(tool))).toEqual([])
  expect(missed(8, queries).length, JSON.stringify(missed(8, queries))).toBeLessThanOrEqual(5)
})

test('20 worded tasks find their tool among the first five', () => {
  expect(worded).toHaveLength(20)
  expect(missed(5, worded)).toEqual([])
})

test('names in other spellings, plurals and other words for the same thing to do', () => {
  const small = createToolIndex(
    ['listOpenIssues', 'close-issue', 'removeUser', 'fetch_weather'].map((name) => ({ name, inputSchema: {} })),
  )
  expect(small.find('open issue', 8)[0]).toBe('listOpenIssues')
  expect(small.find('delete the users', 8)[0]).toBe('removeUser')
  expect(small.find('show the wether', 8)[0]).toBe('fetch_weather')
  expect(small.find('', 8)).toEqual([])
  expect(small.find('x'.repeat(100_000), 8)).toEqual([])
})

test('the same query has the same order', () => {
  const twins = createToolIndex(['b', 'a', 'c'].map((name) => ({ name, description: 'pays a bill', inputSchema: {} })))
  expect(twins.find('bill', 8)).toEqual(['b', 'a', 'c'])
})
