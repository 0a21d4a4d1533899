import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createAnthropicDecoder } from './anthropic.ts'
import type { DecoderOptions, StreamDecoder } from './decoder.ts'
import { createOpenAIChatDecoder } from './openai-chat.ts'
import { createCompatibleDecoder } from './openai-compatible.ts'
import { learnTemplate, type TemplateOptions } from './template.ts'

const textOf = (value: unknown) => (value as { a?: { text?: unknown } } | undefined)?.a?.text
const frame = (data: string) => `data: ${data}\n\n`

function learn(data: string, options: Partial<TemplateOptions> = {}) {
  const value: unknown = JSON.parse(data)
  return learnTemplate({ event: frame(data), data, value, key: 'text', textOf, ...options })
}

describe('learnTemplate', () => {
  test('finds the text, not another string of the same name', () => {
    const template = learn('{"text":"no","a":{"x":{"text":"no"},"text":"yes","z":"\\"text\\":\\"no\\""}}')!
    const event = frame('{"text":"no","a":{"x":{"text":"no"},"text":"other","z":"\\"text\\":\\"no\\""}}')
    expect(template.read(event, 0)).toBe(event.length)
    expect(template.text()).toBe('other')
    expect(
      template.read(frame('{"text":"yes","a":{"x":{"text":"no"},"text":"other","z":"\\"text\\":\\"no\\""}}'), 0),
    ).toBe(-1)
  })

  test('takes the last of two fields of one name, as JSON does', () => {
    const template = learn('{"a":{"text":"first","text":"last"}}')!
    expect(template.read(frame('{"a":{"text":"first","text":"new"}}'), 0)).toBeGreaterThan(0)
    expect(template.text()).toBe('new')
    expect(template.read(frame('{"a":{"text":"new","text":"last"}}'), 0)).toBe(-1)
  })

  test('is not made of a comment, of data in two lines, or of lines that end in CR', () => {
    const data = '{"a":{"text":"x"}}'
    expect(learn(data, { event: `: ${data}\n${frame(data)}` })).toBeUndefined()
    expect(learn(data, { event: `: data: ${data}\n${frame(data)}` })).toBeUndefined()
    expect(learn(data, { event: `data: ${data}\r\r` })).toBeUndefined()
    expect(learn('{"a":\n{"text":"x"}}', { event: 'data: {"a":\ndata: {"text":"x"}}\n\n' })).toBeUndefined()
    expect(learn(data, { event: `event: x\r\ndata:${data}\r\n\r\n` })).toBeDefined()
  })

  test('needs a text that is a string, and is not what it looks for', () => {
    expect(learn('{"a":{"text":1}}')).toBeUndefined()
    expect(learn('{"a":{}}')).toBeUndefined()
    expect(learn('{"a":{"text":"?probe?"}}')).toBeUndefined()
  })

  test('skips fields that nobody reads', () => {
    const template = learn('{"n":7,"a":{"text":"x","n":7,"pad":"in"},"pad":"xx"}', { ignored: ['n', 'pad', 'none'] })!
    const read = (data: string) => template.read(frame(data), 0)
    expect(read('{"n":12,"a":{"text":"y","n":7,"pad":"in"},"pad":""}')).toBeGreaterThan(0)
    expect(template.text()).toBe('y')
    expect(read('{"n":12,"a":{"text":"y","n":8,"pad":"in"},"pad":""}')).toBe(-1)
    for (const wrong of ['1e9', '-1', '01', '', '1.5', '1'.repeat(17), '"1"']) {
      expect(read(`{"n":${wrong},"a":{"text":"y","n":7,"pad":"in"},"pad":""}`)).toBe(-1)
    }
    expect(read('{"n":1,"a":{"text":"y","n":7,"pad":"in"},"pad":"\\n"}')).toBe(-1)
  })

  test('reads a text exactly as JSON does, or leaves it', () => {
    const template = learn('{"a":{"text":"x"},"z":1}')!
    const piece = fc.constantFrom(
      'a',
      'é',
      '世',
      '🌍',
      '\\n',
      '\\"',
      '\\\\',
      '\\u00e9',
      '\\ud83c',
      '\\x',
      '"',
      '\n',
      '\t',
      '\u2028',
      'x'.repeat(9),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
        const event = frame(`{"a":{"text":"${pieces.join('')}"},"z":1}`)
        const end = template.read(`${event}${event}`, 0)
        let expected: unknown
        try {
          expected = textOf(JSON.parse(event.slice(6, -2)))
        } catch {
          expected = undefined
        }
        const isLine = !pieces.includes('\n')
        if (end >= 0) expect([end, template.text()]).toEqual([event.length, expected])
        // An empty text means something else to some decoders.
        else expect(expected === undefined || expected === '' || !isLine).toBe(true)
      }),
      { numRuns: 2000 },
    )
  })

  test('never reads behind what has come', () => {
    const template = learn('{"a":{"text":"x"}}')!
    const event = frame('{"a":{"text":"a\\nb"}}')
    for (let to = 0; to < event.length; to++) expect(template.read(event.slice(0, to), 0)).toBe(-1)
  })
})

const parse = vi.spyOn(JSON, 'parse')
afterEach(() => parse.mockClear())

const shared: DecoderOptions = { emit: () => {}, warnings: [], who: 'it' }
const request = { url: '', body: {} }
const facts = { usesJsonTool: false, includePings: false, documents: [] }
const chat = (delta: object, rest: object = {}) =>
  frame(JSON.stringify({ id: 'c', choices: [{ index: 0, delta }], ...rest }))
const block = (delta: object) =>
  `event: content_block_delta\n${frame(JSON.stringify({ type: 'content_block_delta', index: 0, delta }))}`
const args = (text: string, name?: string) => ({
  tool_calls: [{ index: 0, id: 'a', function: { name, arguments: text } }],
})
const padded = (content: string) => chat({ content }, { obfuscation: content.slice(1) })

const bursts: [string, (text: string) => string, (options: DecoderOptions) => StreamDecoder][] = [
  ['chat text', (content) => chat({ content }), (all) => createCompatibleDecoder({ ...all, metadataKey: 'x' })],
  [
    'chat reasoning',
    (reasoning) => chat({ reasoning }),
    (all) => createCompatibleDecoder({ ...all, metadataKey: 'x' }),
  ],
  ['chat arguments', (text) => chat(args(text, 'get')), (all) => createCompatibleDecoder({ ...all, metadataKey: 'x' })],
  ['openai text', padded, (all) => createOpenAIChatDecoder({ ...all, request })],
  ['openai arguments', (text) => chat(args(text, 'get')), (all) => createOpenAIChatDecoder({ ...all, request })],
  [
    'anthropic text',
    (text) => block({ type: 'text_delta', text }),
    (all) => createAnthropicDecoder({ ...all, request, facts }),
  ],
  [
    'anthropic thinking',
    (thinking) => block({ type: 'thinking_delta', thinking }),
    (all) => createAnthropicDecoder({ ...all, request, facts }),
  ],
]

test.each(bursts)('a burst of %s is not parsed', (_, frameOf, create) => {
  let text = ''
  const emit: DecoderOptions['emit'] = (part) => 'delta' in part && (text += part.delta)
  const decoder = create({ ...shared, emit })
  const texts = Array.from({ length: 200 }, (_each, i) => `text ${i};`)
  for (const each of texts) decoder.push(Buffer.from(frameOf(each)))
  expect(text).toBe(texts.join(''))
  expect(parse.mock.calls.length).toBeLessThan(8)
})

test('a stream in which everything changes is not searched for templates again and again', () => {
  const decoder = createCompatibleDecoder({ ...shared, metadataKey: 'x' })
  for (let i = 0; i < 200; i++) decoder.push(Buffer.from(chat({ content: 'x' }, { number: i })))
  expect(parse.mock.calls.length).toBeLessThan(200 + 40)
})
