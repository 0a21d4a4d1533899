import { expect, test } from 'vitest'
import {
  besideOf,
  besidePath,
  columnsIn,
  firstColumns,
  nextColumn,
  settingsIn,
  withColumns,
  type ColumnSpec,
} from './columns.ts'

test('an address has its columns, each with what is its own', () => {
  const columns: ColumnSpec[] = [
    { agent: 'poet', thread: 'thread_1', run: 'run_1' },
    { agent: 'po et', model: 'openai:gpt-5', temperature: 0, system: 'Be short & kind.' },
    {
      agent: 'a~b',
      model: null,
      temperature: null,
      system: null,
      tools: { 'mcp:files': true, calc: false, mail: false },
    },
  ]
  const path = besidePath(columns, '?show=2&draft=Hi')
  expect(path).toBe(
    '/beside?show=2&draft=Hi&a=poet&thread=thread_1&run=run_1&a=po+et&model=openai:gpt-5&temperature=0&system=Be+short+%26+kind.' +
      '&a=a~b&model=&temperature=&system=&with=mcp:files&without=calc,mail',
  )
  expect(columnsIn(path.slice(path.indexOf('?')))).toEqual(columns)
  expect(withColumns('?a=old&model=x&show=2', [])).toBe('show=2')
  expect(besidePath([])).toBe('/beside')
  expect(columns.map(settingsIn)).toEqual([
    {},
    { model: 'openai:gpt-5', temperature: 0, system: 'Be short & kind.' },
    { model: null, temperature: null, system: null, tools: { 'mcp:files': true, calc: false, mail: false } },
  ])
})

test('a chat with changes is compared with the agent as it is', () => {
  expect(besideOf('po/et', [])).toBe('/beside?a=po/et')
  expect(besideOf('poet', [{ step: 'main/answer', model: 'm', temperature: 0 }])).toBe(
    '/beside?a=poet&a=poet&model=m&temperature=0',
  )
  expect(besideOf('poet', [{ step: 'main/a' }, { step: 'main/b' }])).toBe('/beside?a=poet')
})

test.each<[string, ColumnSpec[]]>([
  ['', []],
  ['?model=m&thread=t', []],
  ['?a=&thread=t', []],
  ['?a=x&model=one&model=two&thread=&run=', [{ agent: 'x', model: 'one' }]],
  ['?a=x&temperature=hot&temperature=-1&temperature=0.5', [{ agent: 'x', temperature: 0.5 }]],
  ['?a=x&__proto__=1&constructor=2&with=,', [{ agent: 'x' }]],
  ['?a=1&a=2&a=3&a=4&a=5', [1, 2, 3, 4].map((n) => ({ agent: String(n) }))],
])('%s', (search, columns) => expect(columnsIn(search)).toEqual(columns))

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
