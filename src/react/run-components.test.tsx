/** What the components draw. That they follow a run is tested in a browser, with examples/react. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { renderToStaticMarkup } from 'react-dom/server'
import { rolldown } from 'rolldown'
import { expect, test } from 'vitest'
import type { MessagePart } from '../client/agent-message.ts'
import { createOutline } from '../fold/outline.ts'
import { logRows, summaryOf } from '../fold/log-rows.ts'
import { buildTree, flattenTree } from '../fold/step-tree.ts'
import type { Entry } from '../part/entry.ts'
import { AnswerParts } from './run-answer.tsx'
import { LogList } from './run-log.tsx'
import { StepList } from './run-outline.tsx'

const golden = readFileSync(new URL('../wire/golden/server-tool.ndjson', import.meta.url), 'utf8')
const entries = golden
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Entry)
const outline = createOutline()
for (const entry of entries) outline.apply(entry)

test('a step and an entry is an item each, with the classes that the docs name', () => {
  const steps = flattenTree(buildTree(outline.items()), () => false)
  const tree = renderToStaticMarkup(<StepList steps={steps} now={0} />)
  expect(tree.match(/<li /gu)).toHaveLength(steps.length)
  const rows = logRows(outline.items()).map((row) => ({ ...row, text: summaryOf(entries[row.seq - 1]!) }))
  const log = renderToStaticMarkup(<LogList lines={rows} startedAt={entries[0]!.timestamp} />)
  expect(log.match(/<li /gu)).toHaveLength(rows.length)
  const cut = renderToStaticMarkup(<LogList lines={rows} startedAt={0} limit={2} />)
  expect(cut.match(/<li /gu)).toHaveLength(2)
  expect(cut).toContain('run-end')
  const answer = renderToStaticMarkup(<AnswerParts parts={parts} />)
  const doc = readFileSync(resolve(import.meta.dirname, '../../docs/client.md'), 'utf8')
  const used = [...`${tree}${log}${answer}`.matchAll(/class="([^"]+)"/gu)].map(([, name]) => name!)
  const named = new Set([...doc.matchAll(/`(millrace-[\w-]+)`/gu)].map(([, name]) => name!))
  expect(new Set(used)).toEqual(
    new Set([...named].filter((name) => name !== 'millrace-answer' && name !== 'millrace-error')),
  )
})

const parts: MessagePart[] = [
  { type: 'text', text: '<b>bold</b>', state: 'done' },
  { type: 'reasoning', text: 'Hm', state: 'streaming' },
  {
    type: 'tool',
    toolCallId: 'c',
    toolName: 'look',
    state: 'output-available',
    inputText: '{"a":1}',
    input: { a: 1 },
    output: { b: 2 },
  },
  {
    type: 'tool',
    toolCallId: 'd',
    toolName: 'ask',
    state: 'input-available',
    inputText: '{}',
    agent: {
      agent: 'helper',
      path: 'main/a/2',
      status: 'waiting',
      parts: [{ type: 'text', text: '<b>inner</b>', state: 'done' }],
    },
  },
  { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,AAAA' },
  { type: 'file', mediaType: 'text/html', url: 'data:text/html;base64,AAAA', filename: 'page' },
  { type: 'source', url: 'https://a.test/', title: 'A' },
  { type: 'source', url: 'javascript:alert(1)', title: 'B' },
  { type: 'data', name: 'n', data: [1] },
]

test('what a model says is text, and leads only to addresses of the web', () => {
  const made = renderToStaticMarkup(<AnswerParts parts={parts} />)
  expect(made).not.toMatch(/<b>|javascript:|text\/html/u)
  expect(made).toContain('<img class="millrace-file" src="data:image/png;base64,AAAA"')
  expect([...made.matchAll(/href="([^"]+)"/gu)].map(([, href]) => href)).toEqual(['https://a.test/'])
  const marked = <AnswerParts parts={parts} renderText={(said, isOpen) => <i>{`${said} ${isOpen}`}</i>} />
  expect(renderToStaticMarkup(marked)).toContain('<i>Hm true</i>')
})

test('a bundle of millrace/react asks for React and nothing else', async () => {
  const bundle = await rolldown({ input: resolve(import.meta.dirname, '../react.ts'), external: /^[^./]/u })
  const { output } = await bundle.generate({ format: 'es' })
  await bundle.close()
  const chunks = output.filter((each) => each.type === 'chunk')
  const modules = chunks.flatMap(({ moduleIds }) => moduleIds)
  expect(modules.some((id) => id.endsWith('run-outline.tsx'))).toBe(true)
  // The page of Millrace has editors and charts: none of its files may come along.
  expect(modules.filter((id) => /\/(?:web|node_modules)\//u.test(id))).toEqual([])
  const own = new Set(chunks.map(({ fileName }) => fileName))
  const asked = chunks.flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports])
  expect(new Set(asked.filter((name) => !own.has(name)))).toEqual(new Set(['react', 'react/jsx-runtime']))
  expect(output.every((each) => each.type === 'chunk')).toBe(true)
})
