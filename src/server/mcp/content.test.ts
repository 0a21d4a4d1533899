import { describe, expect, test } from 'vitest'
import type { RunView } from '../../fold/run-view.ts'
import type { AssistantContent } from '../../part/message.ts'
import { outcomes } from '../../part/part.ts'
import { noUsage } from '../../part/usage.ts'
import { toCallResult, toOutputSchema, type CallResultOptions } from './content.ts'

const summary = { textBlocks: 1, reasoningBlocks: 0, toolCalls: 0, toolResults: 0, errors: 0 }

function run(more: Partial<RunView> = {}, files: AssistantContent[] = []): RunView {
  const { text = 'Hello.' } = more
  const content: AssistantContent[] = [{ type: 'text', text }, ...files]
  return {
    runId: 'run_1',
    agent: 'desk',
    threadId: 'chat 1',
    protocol: 'mcp',
    status: 'completed',
    startedAt: 1,
    lastSeq: 9,
    input: {},
    messages: [{ role: 'assistant', id: 'run_1', content }],
    text,
    steps: [],
    usage: noUsage,
    usageByModel: [],
    usageByStep: [],
    usageByAgent: [],
    requests: [],
    summary,
    ...more,
  }
}

const plain: CallResultOptions = { era: 'modern', hasOutput: false }
const file = (mediaType: string, bytes: number | string, filename?: string): AssistantContent => ({
  type: 'file',
  mediaType,
  data: Buffer.from(typeof bytes === 'string' ? bytes : 'x'.repeat(bytes)).toString('base64'),
  ...(filename !== undefined && { filename }),
})
const contentOf = (view: RunView, options = plain) => toCallResult(view, options).content

describe('the result of a completed run', () => {
  test('is its text, with the ids of run and thread', () => {
    expect(toCallResult(run(), plain)).toEqual({
      content: [{ type: 'text', text: 'Hello.' }],
      _meta: { 'millrace/run': 'run_1', 'millrace/thread': 'chat 1' },
    })
  })

  test('names the thread in its text where the agent wants that', () => {
    expect(contentOf(run(), { ...plain, showsThread: true })).toEqual([
      { type: 'text', text: 'Hello.' },
      { type: 'text', text: 'thread: chat 1' },
    ])
  })

  test('is the value of an agent that streams no answer, and empty if there is none', () => {
    expect(contentOf(run({ text: '', output: { a: 1 } }))).toEqual([{ type: 'text', text: '{"a":1}' }])
    expect(contentOf(run({ text: '', output: 'Done' }))).toEqual([{ type: 'text', text: 'Done' }])
    expect(contentOf(run({ text: '', output: null }))).toEqual([])
    expect(contentOf(run({ text: 'Said', output: 'Done' }))).toEqual([{ type: 'text', text: 'Said' }])
  })

  test('has the output of an agent with a schema twice: as it is, and as text', () => {
    const { content, structuredContent } = toCallResult(run({ output: { a: [1] } }), { ...plain, hasOutput: true })
    expect(structuredContent).toEqual({ a: [1] })
    expect(content).toEqual([{ type: 'text', text: '{"a":[1]}' }])
  })

  test.each([[[1, 2]], ['x'], [7], [null], [false]])('gives legacy clients an object where it is %j', (output) => {
    const modern = toCallResult(run({ output }), { era: 'modern', hasOutput: true })
    const legacy = toCallResult(run({ output }), { era: 'legacy', hasOutput: true })
    expect(modern).toMatchObject({ structuredContent: output, content: [{ text: JSON.stringify(output) }] })
    expect(legacy).toMatchObject({
      structuredContent: { result: output },
      content: [{ text: JSON.stringify({ result: output }) }],
    })
  })

  test('is an error if its output has more than 4 MB', () => {
    const of = (length: number) =>
      toCallResult(run({ output: { a: 'x'.repeat(length) } }), { ...plain, hasOutput: true })
    expect(of(4 * 1024 * 1024 - 8)).not.toHaveProperty('isError')
    const large = of(4 * 1024 * 1024 - 7)
    expect(large).toMatchObject({ isError: true, content: [{ type: 'text' }, { uri: 'run://run_1' }] })
    expect(large).not.toHaveProperty('structuredContent')
    expect(JSON.stringify(large.content[0])).toContain('(bad-output)')
  })

  test('ends after 1 MB of text, with a link to the rest, never in the middle of a character', () => {
    const most = 1024 * 1024
    expect(contentOf(run({ text: 'x'.repeat(most) }))).toHaveLength(1)
    for (const text of ['x'.repeat(most + 1), 'ü'.repeat(most), `x${'😀'.repeat(most / 2)}`]) {
      const [block, link] = contentOf(run({ text })) as [{ text: string }, object]
      const size = Buffer.byteLength(block.text)
      expect(size).toBeLessThanOrEqual(most)
      expect(size).toBeGreaterThan(most - 4)
      expect(text.startsWith(block.text) && block.text.isWellFormed()).toBe(true)
      expect(link).toMatchObject({ type: 'resource_link', uri: 'run://run_1', mimeType: 'text/markdown' })
    }
  })

  test('has the same bytes each time', () => {
    const view = run({ output: { b: 1, a: 2 } }, [file('image/png', 9), file('text/plain', 'hi')])
    const once = JSON.stringify(toCallResult(view, { ...plain, hasOutput: true }))
    // As it comes back from a store.
    const stored = JSON.parse(
      JSON.stringify({ ...view, lastSeq: 4, summary: { ...summary, textBlocks: 2 } }),
    ) as RunView
    expect(JSON.stringify(toCallResult(stored, { ...plain, hasOutput: true }))).toBe(once)
  })
})

describe('files', () => {
  test('are pictures, sound, embedded text or links, in their order', () => {
    const files = [
      file('image/png', 3),
      file('audio/wav', 3),
      file('text/csv', 'a,b', 'table.csv'),
      file('application/pdf', 5, '../x/re\u202Eport.pdf'),
      file('application/json', '{}'),
      { type: 'file', mediaType: 'image/jpeg', data: 'https://files.example/a.jpg' } as const,
      { type: 'file', mediaType: 'image/gif', data: 'data:image/gif;base64,-_-_' } as const,
    ]
    expect(contentOf(run({}, files)).slice(1)).toEqual([
      { type: 'image', data: 'eHh4', mimeType: 'image/png' },
      { type: 'audio', data: 'eHh4', mimeType: 'audio/wav' },
      { type: 'resource', resource: { uri: 'run://run_1/files/3', mimeType: 'text/csv', text: 'a,b' } },
      { type: 'resource_link', uri: 'run://run_1/files/4', name: 'report.pdf', mimeType: 'application/pdf', size: 5 },
      { type: 'resource', resource: { uri: 'run://run_1/files/5', mimeType: 'application/json', text: '{}' } },
      { type: 'resource_link', uri: 'https://files.example/a.jpg', name: 'file-6.jpeg', mimeType: 'image/jpeg' },
      { type: 'image', data: '+/+/', mimeType: 'image/gif' },
    ])
  })

  test('are pictures and sound up to 1 MB together, and links after that', () => {
    const half = 512 * 1024
    const files = [file('image/png', half), file('audio/wav', half + 1), file('image/png', half), file('image/png', 1)]
    const kinds = contentOf(run({}, files)).map(({ type }) => type)
    expect(kinds).toEqual(['text', 'image', 'resource_link', 'image', 'resource_link'])
  })

  test('are embedded up to 64 KB, if they are UTF-8', () => {
    const bytes: AssistantContent = { type: 'file', mediaType: 'text/plain', data: '/w==' }
    const files = [file('text/plain', 65_536), file('text/plain', 65_537), bytes]
    expect(contentOf(run({}, files)).map(({ type }) => type)).toEqual([
      'text',
      'resource',
      'resource_link',
      'resource_link',
    ])
  })
})

describe('the result of a run that did not complete', () => {
  test.each(outcomes.filter((each) => each !== 'completed'))('%s is an error, with the text so far', (status) => {
    const error = { code: 'x', message: 'It broke.', retryAfter: 2, detail: 'internal', step: 'main/a' }
    const result = toCallResult(run({ status, error, output: { a: 1 } }), { ...plain, hasOutput: true })
    expect(result).toEqual({
      isError: true,
      content: [
        { type: 'text', text: 'It broke. Try again in 2 seconds. (x)' },
        { type: 'text', text: 'The answer so far:\nHello.' },
      ],
      _meta: { 'millrace/run': 'run_1', 'millrace/thread': 'chat 1' },
    })
    const silent = toCallResult(run({ status, text: '' }), plain)
    expect(silent.content).toEqual([{ type: 'text', text: expect.stringMatching(/^The (run|agent) .*\.$/u) }])
  })
})

test('legacy clients get an object as output schema', () => {
  const list = { type: 'array' }
  expect(toOutputSchema(list, 'modern')).toBe(list)
  expect(toOutputSchema(list, 'legacy')).toEqual({ type: 'object', properties: { result: list }, required: ['result'] })
  const object = { type: 'object' }
  expect(toOutputSchema(object, 'legacy')).toBe(object)
})
