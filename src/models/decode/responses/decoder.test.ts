import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { expect, test } from 'vitest'
import { callOf } from '../testing/settings.ts'
import { createResponsesDecoder } from './decoder.ts'

const created = { type: 'response.created', response: { id: 'r', created_at: 1, model: 'm' } }
const inProgress = { ...created, type: 'response.in_progress' }
const failure = { type: 'error', sequence_number: 1, code: 'rate_limit', message: 'Slow down' }

function decoding() {
  const types: string[] = []
  let now = 0
  const decoder = createResponsesDecoder({
    emit: (part: LanguageModelV4StreamPart) => types.push(part.type),
    provider: 'openai.responses',
    call: callOf([]),
    request: { url: 'http://x/', body: {} },
    warnings: [],
    who: 'openai:m',
    limits: { lineBytes: 1000, bodyBytes: 1000 },
    now: () => now,
  })
  const push = (...events: object[]) =>
    decoder.push(Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')))
  return { decoder, types, push, wait: (ms: number) => (now += ms) }
}

test('an error soon after the request was accepted refuses it: nothing was emitted', () => {
  const { types, push, wait } = decoding()
  push(created, inProgress)
  wait(50)
  expect(() => push(failure)).toThrow('Slow down')
  expect(types).toEqual([])
})

test('an error long after the request was accepted is a part of the answer', () => {
  const { decoder, types, push, wait } = decoding()
  push(created, inProgress)
  wait(51)
  push(failure)
  decoder.end()
  expect(types).toEqual(['stream-start', 'response-metadata', 'error', 'finish'])
})

test('a request that was not accepted can be refused at any time', () => {
  const { types, push, wait } = decoding()
  push(created)
  wait(1000)
  expect(() => push(failure)).toThrow('Slow down')
  expect(types).toEqual([])
})

test('pushing no bytes shows what has waited long enough', () => {
  const { decoder, types, push, wait } = decoding()
  push(created, inProgress)
  wait(51)
  decoder.push(new Uint8Array())
  expect(types).toEqual(['stream-start', 'response-metadata'])
})

test('a line that is too long is refused', () => {
  const { decoder } = decoding()
  expect(() => decoder.push(Buffer.from(`data: ${'x'.repeat(2000)}`))).toThrow('more than 1000 bytes')
})
