import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createAnthropicDecoder } from './anthropic/decoder.ts'
import { createCompatibleDecoder } from './chat/openai-compatible.ts'
import type { DecoderOptions, StreamDecoder } from './decoder.ts'
import { createGoogleDecoder } from './google/decoder.ts'
import { textAt } from './json-places.ts'
import { createResponsesDecoder } from './responses/decoder.ts'
import { createTemplate } from './template.ts'
import { often } from '../../../test/support/thorough.ts'

const choose = textAt('a.0.text', 'n.one', 'pad')
const frame = (data: string) => `data: ${data}\n\n`
const eventOf = (data: string) => `event: x\n${frame(data)}`
const templateOf = (data: string) => createTemplate(eventOf(data), data, choose)
const sample = '{"n":{"one":1},"a":[{"text":"first","id":"i"}],"pad":"xx","last":null}'

test('reads events that differ in the places only', () => {
  const template = templateOf(sample)!
  const data = '{"n":{"one":23},"a":[{"text":"\\u00fc\\n","id":"i"}],"pad":"","last":null}'
  const source = `before${eventOf(data)}after`
  const end = 6 + eventOf(data).length
  expect(template.read(source, 6)).toBe(end)
  expect(template.text()).toBe('ü\n')
  expect(template.data(source, 6, end)).toBe(data)
})

test('what does not match changes nothing', () => {
  const template = templateOf(sample)!
  const other = sample.replace('first', 'other')
  expect(template.read(eventOf(other), 0)).toBeGreaterThan(0)
  expect(template.read(eventOf(other.replace('other', 'third').replace('null', '1')), 0)).toBe(-1)
  expect(template.text()).toBe('other')
})

test.each([
  ['another value', '"id":"i"', '"id":"j"'],
  ['an event that is not complete', '}\n\n', '}\n'],
  ['a number with a leading zero', '"one":1', '"one":01'],
  ['a number with a fraction', '"one":1', '"one":1.5'],
  ['a number with an exponent', '"one":1', '"one":1e9'],
  ['a number that not every reader can hold', '"one":1', '"one":1234567890123456'],
  ['a negative number', '"one":1', '"one":-1'],
  ['no number', '"one":1', '"one":'],
  ['a text in place of a number', '"one":1', '"one":"1"'],
  ['a number in place of the text', '"first"', '1'],
  ['an empty text', '"first"', '""'],
  ['a raw control character', '"first"', '"a\tb"'],
  ['an escape that JSON does not know', '"first"', '"a\\xb"'],
  ['an escape that nobody reads', '"pad":"xx"', '"pad":"\\x"'],
  ['an end in the middle of the text', '"first"', '"first'],
])('leaves %s to the parser', (_, from, to) => {
  const event = eventOf(sample).replace(from, () => to)
  expect(event).not.toBe(eventOf(sample))
  expect(templateOf(sample)!.read(event, 0)).toBe(-1)
})

test.each([
  ['has no text', '{"a":[{"id":"i"}]}'],
  ['has a key twice', '{"a":[{"text":"x"}],"a":null}'],
  ['has a key twice, written in two ways', '{"a":[{"text":"x"}],"\\u0061":null}'],
  ['has a nameless key', '{"":{"a":[{"text":"x"}]}}'],
  ['has a key that looks like a path', '{"a.0":{"text":"x"}}'],
  ['has no text but a number', '{"a":[{"text":1}]}'],
])('makes none of an event that %s', (_, data) => {
  expect(templateOf(data)).toBeUndefined()
})

test('makes none of data in a comment or in two lines, or of lines that end in CR', () => {
  const data = '{"a":[{"text":"x"}]}'
  const make = (event: string, read = data) => createTemplate(event, read, choose)
  expect(make(`: ${data}\n${frame(data)}`)).toBeUndefined()
  expect(make(`: data: ${data}\n${frame(data)}`)).toBeUndefined()
  expect(make(`data: ${data}\r\r`)).toBeUndefined()
  expect(make('data: {"a":\ndata: [{"text":"x"}]}\n\n', '{"a":\n[{"text":"x"}]}')).toBeUndefined()
  expect(make(`event: x\r\ndata:${data}\r\n\r\n`)).toBeDefined()
})

test('never reads behind what has come', () => {
  const template = templateOf(sample)!
  const event = eventOf(sample.replace('first', 'a\\nb'))
  for (let to = 0; to < event.length; to++) expect(template.read(event.slice(0, to), 0)).toBe(-1)
  expect(template.read(event, 0)).toBe(event.length)
})

describe('whatever it reads is what a parser reads', () => {
  const string = (text: string) => `"${text}"`
  const token = fc.oneof(
    fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
    fc.string({ unit: fc.constantFrom('\\', '"', 'u', '0', 'n', '\t', 'é', '\u001f') }).map(string),
    fc
      .array(fc.constantFrom('a', '世', '🌍', '\\n', '\\"', '\\u00e9', '\\ud83c', '\u2028', 'x'.repeat(20)))
      .map((all) => string(all.join(''))),
    fc.constantFrom('1', '007', '-1', '1e3', 'null', '""', '[]'),
  )

  test.each([1, 30])('in a piece of %i events', (count) => {
    const template = templateOf(sample)!
    let read = 0
    fc.assert(
      fc.property(token, token, token, (text, number, pad) => {
        const data = `{"n":{"one":${number}},"a":[{"text":${text},"id":"i"}],"pad":${pad},"last":null}`
        const event = eventOf(data)
        if (template.read(event.repeat(count), 0) !== event.length) return
        read++
        const value = JSON.parse(data) as { a: { text: string }[] }
        expect(value.a[0]?.text).toBe(template.text())
      }),
      { numRuns: often(2000), examples: [['"x"', '1', '""']] },
    )
    expect(read).toBeGreaterThan(0)
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
let number = 0
const responsesDelta = (delta: string, type: string) =>
  frame(JSON.stringify({ type, sequence_number: number++, item_id: 'i', delta, obfuscation: delta.slice(1) }))
const googleText = (text: string) =>
  frame(
    JSON.stringify({ candidates: [{ content: { parts: [{ text }] } }], usageMetadata: { totalTokenCount: number++ } }),
  )
const call = { prompt: [], tools: [] }
const padded = (content: string) => chat({ content }, { obfuscation: content.slice(1) })

const bursts: [string, (text: string) => string, (options: DecoderOptions) => StreamDecoder][] = [
  ['chat text', (content) => chat({ content }), (all) => createCompatibleDecoder({ ...all, metadataKey: 'x' })],
  [
    'chat reasoning',
    (reasoning) => chat({ reasoning }),
    (all) => createCompatibleDecoder({ ...all, metadataKey: 'x' }),
  ],
  ['chat arguments', (text) => chat(args(text, 'get')), (all) => createCompatibleDecoder({ ...all, metadataKey: 'x' })],
  ['chat text, padded', padded, (all) => createCompatibleDecoder({ ...all, metadataKey: 'x' })],
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
  [
    'responses text',
    (delta) => responsesDelta(delta, 'response.output_text.delta'),
    (all) => createResponsesDecoder({ ...all, request, call, provider: 'openai.responses' }),
  ],
  [
    'google text',
    (text) => googleText(text),
    (all) => createGoogleDecoder({ ...all, request, call, provider: 'google' }),
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
