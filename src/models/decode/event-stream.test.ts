/** `TextDecoderStream` and `eventsource-parser`, as the AI SDK's packages use them, are the oracle. */
import { createParser } from 'eventsource-parser'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createEventStream } from './event-stream.ts'
import { often } from '../../../test/support/thorough.ts'

async function oracle(pieces: Uint8Array[]): Promise<string[]> {
  const events: string[] = []
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece)
      controller.close()
    },
  })
  const stream = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .pipeThrough(new EventSourceParserStream())
  for await (const { data } of stream) if (data !== '[DONE]') events.push(data)
  return events
}

function parse(text: string): string[] {
  const events: string[] = []
  createParser({ onEvent: ({ data }) => events.push(data) }).feed(text)
  return events
}

function ours(pieces: Uint8Array[], lineBytes = 1e6): string[] {
  const events: string[] = []
  const limits = { lineBytes, bodyBytes: 1e6 }
  const stream = createEventStream({
    who: 'it',
    limits,
    onData(data, source, from, to) {
      if (from >= 0) expect(parse(`\n${source.slice(from, to)}\n`)).toEqual([data])
      events.push(data)
    },
  })
  for (const piece of pieces) stream.push(piece)
  return events
}

function cut(bytes: Buffer, places: number[]): Uint8Array[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...ends].map((start, i) => bytes.subarray(start, ends[i] ?? bytes.length))
}

const words = ['data', 'data:', 'data: ', ' ', ':', 'event: x', 'id:1', 'retry: 5', '[DONE]', 'ü', '世🌍', '\0', 'a']
const ends = ['\n', '\n\n', '\r\n', '\r\n\r\n', '\r', '\r\r', '\n\r']
const broken = [[0xff], [0xe4], [0xe4, 0xb8], [0xf0, 0x9f, 0x8c], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xef, 0xbb, 0xbf]]
const token = fc.oneof(
  fc.constantFrom(...words, ...ends).map((text) => Buffer.from(text)),
  fc.constantFrom(...broken).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom('\u00ef\u00bb\u00bf', '\ufeff').map((text) => Buffer.from(text)),
)

test('reads what the packages read, however it is cut', async () => {
  const input = fc.tuple(fc.array(token, { maxLength: 30 }), fc.array(fc.nat(), { maxLength: 8 }))
  await fc.assert(
    fc.asyncProperty(input, async ([tokens, places]) => {
      const bytes = Buffer.concat(tokens)
      // Node's decoder drops both of two marks if the first is cut.
      fc.pre(!bytes.toString().startsWith('\ufeff\ufeff'))
      const pieces = cut(bytes, places)
      expect(ours(pieces)).toEqual(await oracle(pieces))
    }),
    { numRuns: Number(process.env['MILLRACE_FUZZ'] ?? often(2000)) },
  )
})

test('reads every cut of a stream with characters of several bytes', async () => {
  const bytes = Buffer.from(
    '\ufeffdata: Grüße\r\ndata: 世界\r\n\r\n: comment\ndata:{"🌍":1}\n\ndata: [DONE]\n\ndata: lost\n',
  )
  const whole = await oracle([bytes])
  expect(whole).toEqual(['Grüße\n世界', '{"🌍":1}'])
  for (let at = 0; at <= bytes.length; at++) expect(ours([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(whole)
  expect(ours([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(whole)
})

test('reads all events behind one that was cut, at once', async () => {
  const bytes = Buffer.from(Array.from({ length: 5 }, (_, i) => `data: ${i}${['\n\n', '\r\n\r\n'][i % 2]}`).join(''))
  for (let at = 0; at <= bytes.length; at++) {
    const pieces = [bytes.subarray(0, at), bytes.subarray(at)]
    expect(ours(pieces)).toEqual(['0', '1', '2', '3', '4'])
    expect(await oracle(pieces)).toEqual(['0', '1', '2', '3', '4'])
  }
})

test('bounds an unfinished line and an unfinished event', () => {
  const error = expect.objectContaining({ code: 'line-too-long', message: expect.stringContaining('it sent') })
  const endless = Array.from({ length: 100 }, () => Buffer.from('data: aa'))
  expect(() => ours(endless, 100)).toThrow(error)
  const lines = Array.from({ length: 100 }, () => Buffer.from('data: aa\n'))
  expect(() => ours(lines, 100)).toThrow(error)
  expect(ours(Array<Uint8Array>(100).fill(Buffer.from('data: aa\n\n')), 100)).toHaveLength(100)
})
