import { describe, expect, test } from 'vitest'
import type { Message, ToolResultContent } from '../part/message.ts'
import { addLong, lengthOf, oldResultsAsHandles, readTool, withShortened } from './long-results.ts'
import { handleOf, markOfRun, parseHandle, smallResult } from './result-handle.ts'
import { resultLength } from './result-length.ts'

const text = (length: number, from = 'a') => from.repeat(length)
const result = (id: string, value: unknown, more: Partial<ToolResultContent> = {}): ToolResultContent => ({
  type: 'tool-result',
  toolCallId: id,
  toolName: 'fetchPage',
  output: typeof value === 'string' ? { type: 'text', value } : { type: 'json', value },
  ...more,
})
const tool = (...content: ToolResultContent[]): Message => ({ role: 'tool', content })
const user = (content: string): Message => ({ role: 'user', content })
const call = (id: string): Message => ({
  role: 'assistant',
  content: [{ type: 'tool-call', toolCallId: id, toolName: 'fetchPage', input: {} }],
})
const outputs = (messages: readonly Message[]) =>
  messages.flatMap((message) => (message.role === 'tool' ? message.content : []))
const saidOf = ({ output }: ToolResultContent) => String((output as { value: unknown }).value)

describe('a shortened result', () => {
  test('has the beginning, the end, the size, the shape of JSON and the handle, and no more than 4 KB', () => {
    const value = { orders: Array.from({ length: 2000 }, (_, id) => ({ id, lines: [{ sku: `s${id}` }] })), total: 2000 }
    const long = result('c1', value, { handle: 'res_7' })
    const [short] = outputs(withShortened([tool(long)], new Set(['res_7'])))
    const said = saidOf(short!)
    const json = JSON.stringify(value)
    expect(said).toContain(`${json.length.toLocaleString('en-US')} characters of JSON`)
    expect(said).toContain('{orders: [2000 × {id: number, lines: [1 × {sku: string}]}], total: number}')
    expect(said).toContain('res_7')
    expect(said).toContain(json.slice(0, 2000))
    expect(said.endsWith(json.slice(-1000))).toBe(true)
    expect(said.length).toBeLessThanOrEqual(smallResult)
    expect(short).toMatchObject({ handle: 'res_7', shortened: true, toolCallId: 'c1', output: { type: 'text' } })
  })

  test('is the same each time, and is not shortened again', () => {
    const once = withShortened([tool(result('c1', text(50_000), { handle: 'res_7' }))], new Set(['res_7']))
    expect(outputs(withShortened(once, new Set(['res_7'])))[0]).toBe(outputs(once)[0])
    const handles = new Set<string>()
    addLong(handles, once, () => 0)
    expect([...handles]).toEqual([])
  })

  test('says nothing of a shape for text that is no JSON, keeps the type of an error, and cuts no character in two', () => {
    const failed = result('c1', '', {
      handle: 'res_7',
      output: { type: 'error-text', value: `${text(1999)}😀${text(9000)}` },
    })
    const [short] = outputs(withShortened([tool(failed)], new Set(['res_7'])))
    expect(short!.output.type).toBe('error-text')
    expect(saidOf(short!)).not.toContain('shape')
    expect(saidOf(short!)).not.toMatch(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])/u)
    expect(saidOf(short!)).toContain('its first 1,999 and its last 1,000')
  })

  test('keeps its files as parts', () => {
    const image = { type: 'image', data: text(60_000, 'A'), mimeType: 'image/png' }
    const long = result('c1', [{ type: 'text', text: text(40_000) }, image], { handle: 'res_7' })
    expect(lengthOf(long)).toBeLessThan(41_000)
    const [short] = outputs(withShortened([tool(long)], new Set(['res_7'])))
    expect(short!.output).toMatchObject({
      type: 'json',
      value: [
        { type: 'text', text: expect.stringContaining('res_7') },
        { type: 'file', mediaType: 'image/png', data: image.data },
      ],
    })
  })
})

test('what is long is decided by the characters that a tool may tell; a file counts as its mark, a read never', () => {
  const messages = [
    tool(result('c1', text(30_000), { handle: 'res_1' }), result('c2', text(30_001), { handle: 'res_2' })),
    tool(result('c3', [{ type: 'image', data: text(60_000, 'A'), mimeType: 'image/png' }], { handle: 'res_3' })),
    tool(result('c4', text(40_000), { toolName: readTool, handle: 'res_4' }), result('c5', text(40_000))),
  ]
  const handles = new Set<string>()
  addLong(handles, messages, () => 30_000)
  expect([...handles]).toEqual(['res_2', 'res_in_c5'])
})

test('the length of JSON is that of its text', () => {
  for (const value of [{ a: [1, 'two\n"', null, { b: true }], 'c d': '😀\ud800' }, [], {}, [[]], 12.5, 'plain', null]) {
    const expected = typeof value === 'string' ? value.length : JSON.stringify(value).length
    expect(resultLength(value)).toBe(expected)
  }
  expect(
    resultLength(
      Array.from({ length: 1e6 }, () => 'x'),
      100,
    ),
  ).toBeGreaterThan(100)
})

describe('old results become handles when the window is full', () => {
  const messages = () => [
    user('go'),
    call('c1'),
    tool(result('c1', text(20_000), { handle: 'res_1' })),
    call('c2'),
    tool(result('c2', text(4096), { handle: 'res_2' }), result('c3', text(9000), { handle: 'res_3' })),
    call('c4'),
    tool(result('c4', text(9000), { handle: 'res_4' })),
  ]

  test('all that are longer than 4 KB and older than what is kept, at once', () => {
    const { messages: told, handles } = oldResultsAsHandles(messages(), { keep: 10_000 })
    expect(handles.toSorted()).toEqual(['res_1', 'res_3'])
    expect(outputs(told).map(({ shortened }) => shortened === true)).toEqual([true, false, true, false])
    expect(oldResultsAsHandles(told, { keep: 0 }).handles).toEqual(['res_4'])
  })

  test('within one round that is larger than what is kept, the older ones; the size may be in another unit', () => {
    const round = [
      user('go'),
      call('c1'),
      tool(...['1', '2', '3'].map((id) => result(`c${id}`, text(8000), { handle: `res_${id}` }))),
    ]
    const sizes: string[] = []
    const size = (message: Message) => (sizes.push(message.role), message.role === 'tool' ? 2000 : 10)
    expect(oldResultsAsHandles(round, { keep: 4000, size }).handles).toEqual(['res_1'])
    expect(sizes).toEqual(['tool', 'tool', 'tool', 'assistant', 'user'])
  })

  test('a piece that was read says how to read it again, and makes no new handle', () => {
    const read = tool(result('c1', text(16_000), { toolName: readTool, handle: 'res_9' }))
    const [short] = outputs(oldResultsAsHandles([read], { keep: 0 }).messages)
    expect(saidOf(short!)).toContain('The same call reads it again')
    expect(saidOf(short!)).not.toContain('res_')
  })
})

test('handles of later runs have a mark that a fork shares', () => {
  const start = {
    seq: 1,
    step: '',
    type: 'run-start',
    timestamp: 1_764_400_000_000,
    runId: 'run_1',
    input: { messages: [user('go')] },
  }
  const mark = (more: object) => markOfRun({ ...start, ...more } as unknown as Parameters<typeof markOfRun>[0])
  expect(mark({})).toBe('')
  expect(mark({ previousRunId: 'run_0' })).toMatch(/^[a-z0-9]{6}$/u)
  expect(mark({ input: { messages: [call('c1'), user('go')] } })).toBe(mark({ previousRunId: 'run_0' }))
  expect(mark({ previousRunId: 'run_0', forkedFrom: { runId: 'run_1', seq: 9, at: 9 } })).toBe(
    mark({ previousRunId: 'x' }),
  )
  expect(mark({ input: { messages: [null, 'odd'] } })).toBe('')
  for (const [seq, of] of [
    [12, ''],
    [7, 'k3x9ab'],
  ] as const)
    expect(parseHandle(handleOf(seq, of))).toEqual({ seq, mark: of })
  for (const odd of ['res_', 'res_x', 'res_in_c1', '12', 'res_1_ABC']) expect(parseHandle(odd)).toBeUndefined()
})
