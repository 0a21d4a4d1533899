import { expect, test } from 'vitest'
import { besidePath, columnsIn, firstColumns, nextColumn, toTemperature, withColumns } from './columns.ts'

test('an address has its columns, each with what is its own', () => {
  const columns = [
    { agent: 'poet', thread: 'thread_1', run: 'run_1' },
    { agent: 'po et', model: 'openai:gpt-5', temperature: 0, system: 'Be short & kind.' },
    { agent: 'a~b' },
  ]
  const path = besidePath(columns, '?show=2&draft=Hi')
  expect(path).toBe(
    '/beside?show=2&draft=Hi&a=poet&thread=thread_1&run=run_1&a=po+et&model=openai:gpt-5&temperature=0&system=Be+short+%26+kind.&a=a~b',
  )
  expect(columnsIn(path.slice(path.indexOf('?')))).toEqual(columns)
  expect(withColumns('?a=old&model=x&show=2', [])).toBe('show=2')
  expect(besidePath([])).toBe('/beside')
})

test.each([
  ['', []],
  ['?model=m&thread=t', []],
  ['?a=', []],
  ['?a=x&model=one&model=two', [{ agent: 'x', model: 'one' }]],
  ['?a=x&temperature=hot&__proto__=1&constructor=2', [{ agent: 'x' }]],
  ['?a=1&a=2&a=3&a=4&a=5', [1, 2, 3, 4].map((n) => ({ agent: String(n) }))],
])('%s', (search, columns) => expect(columnsIn(search)).toEqual(columns))

test.each([
  ['0', 0],
  [' 1.5 ', 1.5],
  ['2', 2],
  ['2.1', undefined],
  ['-1', undefined],
  ['', undefined],
  ['warm', undefined],
])('a temperature of %j', (text, n) => expect(toTemperature(text)).toBe(n))

test('a first visit has two columns: one agent with two models, or two agents for who may not choose models', () => {
  const agents = ['assistant', 'poet']
  expect(firstColumns([], { agents, first: 'poet', canChange: true })).toEqual([{ agent: 'poet' }, { agent: 'poet' }])
  expect(firstColumns([], { agents, first: 'poet', canChange: false })).toEqual([
    { agent: 'poet' },
    { agent: 'assistant' },
  ])
  expect(firstColumns([{ agent: 'assistant', model: 'm' }], { agents, first: 'poet', canChange: false })).toEqual([
    { agent: 'assistant', model: 'm' },
    { agent: 'poet' },
  ])
  const three = [{ agent: 'a' }, { agent: 'b' }, { agent: 'c' }]
  expect(firstColumns(three, { agents, first: 'poet', canChange: true })).toEqual(three)
  expect(nextColumn([{ agent: 'assistant' }, { agent: 'poet' }], { agents, canChange: false })).toEqual({
    agent: 'poet',
  })
})
