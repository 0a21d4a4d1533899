/** Answers that take several requests: what the package does itself, and what is left to whoever drives the decoder. */
import { createGoogle } from '@ai-sdk/google'
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { expect, test } from 'vitest'
import { callOf } from '../testing/settings.ts'
import { createGoogleDecoder } from './decoder.ts'

const chunk = (text: string, rest: object = {}, counts: object = {}) => ({
  candidates: [{ content: { parts: [{ text }] }, ...rest }],
  usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2, ...counts },
})
const goesOn = { finishReason: 'CONTINUATION', continuationToken: 't1' }
const bodyOf = (...chunks: object[]) => chunks.map((value) => `data: ${JSON.stringify(value)}\n\n`).join('')

const call = callOf([])
const request = { url: 'http://x/', body: {}, responseHeaders: {} }

async function byPackage(second: () => Response): Promise<LanguageModelV4StreamPart[]> {
  const bodies: unknown[] = []
  const fetch: typeof globalThis.fetch = async (_, init) => {
    bodies.push(JSON.parse(init?.body as string))
    return bodies.length === 1 ? new Response(bodyOf(chunk('one '), chunk('two', goesOn))) : second()
  }
  const { stream } = await createGoogle({ apiKey: 'x', fetch })('gemini-3-pro-preview').doStream(call)
  const parts: LanguageModelV4StreamPart[] = []
  for await (const part of stream) parts.push(part)
  expect(bodies[1]).toEqual({ ...(bodies[0] as object), continuationToken: 't1' })
  return parts
}

function decoding() {
  const parts: LanguageModelV4StreamPart[] = []
  const emit = (part: LanguageModelV4StreamPart) => parts.push(part)
  const decoder = createGoogleDecoder({ emit, provider: 'google', call, request, warnings: [], who: 'google:m' })
  decoder.push(Buffer.from(bodyOf(chunk('one '), chunk('two', goesOn))))
  expect(decoder.continuation()).toBe('t1')
  return { parts, decoder }
}

test('goes on with the next body', async () => {
  const end = bodyOf(chunk(' three', { finishReason: 'STOP' }))
  const theirs = await byPackage(() => new Response(end))
  const { parts, decoder } = decoding()
  decoder.continued()
  decoder.push(Buffer.from(end))
  expect(decoder.continuation()).toBeUndefined()
  decoder.end()
  expect(parts).toEqual(theirs)
  expect(parts.at(-1)).toMatchObject({ finishReason: { unified: 'stop' }, usage: { outputTokens: { total: 4 } } })
})

test('ends with the error of a request that failed', async () => {
  const theirs = await byPackage(() => new Response('{}', { status: 500 }))
  const { parts, decoder } = decoding()
  const error = theirs.find(({ type }) => type === 'error') as { error: unknown }
  decoder.failed(error.error)
  expect(decoder.continuation()).toBeUndefined()
  decoder.end()
  expect(parts).toEqual(theirs)
  expect(parts.at(-1)).toMatchObject({ finishReason: { raw: 'CONTINUATION' } })
})

test('the counts are those of the last chunk, also where chunks differ in them and in their text only', () => {
  const parts: LanguageModelV4StreamPart[] = []
  const emit = (part: LanguageModelV4StreamPart) => parts.push(part)
  const decoder = createGoogleDecoder({ emit, provider: 'google', call, request, warnings: [], who: 'google:m' })
  const counted = (text: string, candidatesTokenCount: number) => chunk(text, {}, { candidatesTokenCount })
  decoder.push(Buffer.from(bodyOf(counted('one', 1), counted('two', 2), counted('three', 3))))
  decoder.push(Buffer.from(bodyOf(counted('four', 4))))
  decoder.end()
  expect(parts.at(-1)).toMatchObject({ type: 'finish', usage: { outputTokens: { total: 4 } } })
})
