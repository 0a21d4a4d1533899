/** Recorded runs as the official clients read them: `openai` (raw stream, helper, both APIs) and the AI SDK's provider. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, jsonSchema, streamText, tool } from 'ai'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { openaiClient, readChunks, readSdkParts, readStream } from '../../../test/openai-client.ts'
import type { Entry } from '../../part/entry.ts'
import { openaiJsonWire } from './openai-completion.ts'
import type { OpenAiOptions } from './openai-output.ts'
import { openaiWire } from './openai.ts'

const golden = (file: string) => readFileSync(new URL(`../golden/${file}`, import.meta.url), 'utf8')
const run = (name: string) =>
  golden(`${name}.ndjson`)
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry)

function frames(name: string, openai: OpenAiOptions = {}): string[] {
  const encoder = openaiWire.createEncoder({}, openai)
  return run(name).map((entry) => encoder.encode(entry))
}

function body(name: string, openai: OpenAiOptions = {}): string {
  const encoder = openaiJsonWire.createEncoder({}, openai)
  const [result] = run(name).flatMap((entry) => encoder.encode(entry))
  return JSON.stringify((result as { body: object }).body)
}

const request = { model: 'm', messages: [{ role: 'user' as const, content: 'Hi' }] }
const calls = [
  ['call_a', 'pickColour', '{"from":["red","green"]}'],
  ['call_b', 'pickColour', '{"from":["blue","gold"]}'],
  ['call_c', 'confirm', '{}'],
]

describe('OpenAI wire: official client', () => {
  test('calls that are written at once stay apart in every client', async () => {
    const sent = frames('client-tools', { includeUsage: true }).join('')
    const { completion } = await readStream(sent)
    const { finish_reason, message } = completion!.choices[0]!
    expect([finish_reason, message.content]).toEqual(['tool_calls', 'I ask you.'])
    const read = message.tool_calls!.map(
      (call) => call.type === 'function' && [call.id, call.function.name, call.function.arguments],
    )
    expect(read).toEqual(calls)
    const parts = await readSdkParts(sent)
    const told = parts.flatMap((part) =>
      part.type === 'tool-call' ? [[part.toolCallId, part.toolName, part.input]] : [],
    )
    expect(told).toEqual(calls)
  })

  test('the AI SDK hands a client’s calls to the client, streamed or not', async () => {
    const tools = { pickColour: tool({ inputSchema: jsonSchema({}) }), confirm: tool({ inputSchema: jsonSchema({}) }) }
    const asked = { prompt: 'Pick two', tools }
    const model = (text: string, contentType: string) => {
      const fetch = async () => new Response(text, { headers: { 'content-type': contentType } })
      return createOpenAICompatible({ name: 'test', baseURL: 'http://test/v1', includeUsage: true, fetch })('m')
    }
    const streamed = streamText({ model: model(frames('client-tools').join(''), 'text/event-stream'), ...asked })
    const whole = await generateText({ model: model(body('client-tools'), 'application/json'), ...asked })
    for (const [reason, told] of [
      [await streamed.finishReason, await streamed.toolCalls],
      [whole.finishReason, whole.toolCalls],
    ] as const) {
      expect(reason).toBe('tool-calls')
      expect(told.map(({ toolCallId, toolName, input }) => [toolCallId, toolName, JSON.stringify(input)])).toEqual(
        calls,
      )
    }
  })

  test('one JSON: the helper builds from the stream the JSON that the package reads', async () => {
    for (const name of ['plain-text', 'client-tools', 'reasoning', 'max-steps', 'parallel-answers']) {
      const whole = await openaiClient(body(name), 'application/json').chat.completions.create(request)
      const { completion } = await readStream(frames(name, { includeUsage: true }).join(''))
      const [{ message, ...choice }, streamed] = [whole.choices[0]!, completion!.choices[0]!]
      expect(streamed).toMatchObject(choice)
      expect(streamed.message.content).toBe(message.content ?? '')
      expect(streamed.message.tool_calls).toEqual(message.tool_calls)
      expect(completion!.usage).toEqual(whole.usage)
      expect([completion!.id, completion!.created, completion!.model]).toEqual([whole.id, whole.created, whole.model])
    }
  })

  test('thoughts are thoughts to the AI SDK', async () => {
    const parts = await readSdkParts(frames('reasoning').join(''))
    const joined = (type: string) =>
      parts.flatMap((part) => (part.type === type && 'delta' in part ? [part.delta] : [])).join('')
    expect([joined('reasoning-delta'), joined('text-delta')]).toEqual(['Let me think.', 'Done.'])
  })

  test('the usage comes only when asked for; the raw stream gives it with the last chunk, and null before', async () => {
    const { chunks } = await readChunks(frames('plain-text', { includeUsage: true }).join(''))
    expect(chunks.map(({ usage }) => usage ?? null).slice(0, -1)).toEqual(chunks.slice(1).map(() => null))
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 },
    })
    const { chunks: without } = await readChunks(frames('plain-text').join(''))
    expect(without.some((chunk) => 'usage' in chunk || chunk.choices.length === 0)).toBe(false)
  })

  test.each(['error-midway', 'budget-exceeded', 'abort-midway', 'reset'])(
    '%s: every client gets the words, then an error with its code, and no end of an answer',
    async (name) => {
      const sent = frames(name).join('')
      const { error: told } = JSON.parse(sent.split('\n\n').at(-3)!.slice('data: '.length)) as {
        error: { message: string; code: string }
      }
      const { chunks, error } = await readChunks(sent)
      expect(chunks.length).toBeGreaterThan(1)
      expect(chunks.every(({ choices }) => choices[0]!.finish_reason === null)).toBe(true)
      expect(error).toMatchObject({ code: told.code, type: 'server_error', param: null })
      expect(error!.message).toBe(told.message)
      expect((await readStream(sent)).error!.message).toBe(told.message)
      const parts = await readSdkParts(sent)
      expect(parts).toContainEqual({ type: 'error', error: { ...told, type: 'server_error', param: null } })
      expect(parts.at(-1)).toMatchObject({ type: 'finish', finishReason: { unified: 'error' } })
    },
  )

  test('a body that breaks off anywhere before its end is no answer to the clients that look', async () => {
    const sent = frames('client-tools').filter((frame) => frame !== '')
    for (let k = 1; k < sent.length; k++) {
      const part = sent.slice(0, k).join('')
      expect((await readStream(part)).error!.message).toContain('missing finish_reason')
      expect((await readSdkParts(part)).at(-1)).toMatchObject({ finishReason: { unified: 'error' } })
    }
  })

  test('keep-alives between any frames change nothing', async () => {
    const sent = frames('client-tools')
    expect(await readChunks(sent.join(openaiWire.keepAlive))).toEqual(await readChunks(sent.join('')))
    expect(await readSdkParts(sent.join(openaiWire.keepAlive))).toEqual(await readSdkParts(sent.join('')))
  })

  test('with the extensions the package still reads the words; traces are chunks without choices', async () => {
    const sent = frames('router', { extensions: ['tools', 'trace'], includeUsage: true }).join('')
    const { chunks, error } = await readChunks(sent)
    expect(error).toBe(undefined)
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('12*7 is 84, and it is noon.')
    const stages = chunks.flatMap((chunk) => ('bernard' in chunk ? [(chunk.bernard as { stage: string }).stage] : []))
    expect(stages).toEqual(['router', 'router', 'response'])
    const { completion } = await readStream(sent)
    expect(completion!.choices[0]!.message.tool_calls!.map(({ id }) => id)).toEqual(['call_1', 'call_2', 'call_4'])
  })

  test('without them nobody learns of a server’s tools', async () => {
    const parts = await readSdkParts(frames('router').join(''))
    expect(parts.some(({ type }) => type.startsWith('tool-'))).toBe(false)
    expect(frames('router').join('')).not.toMatch(/calculator|respond|system|prompt/u)
  })

  test('text completions, both modes', async () => {
    const openai: OpenAiOptions = { object: 'text_completion', includeUsage: true }
    const asked = { model: 'm', prompt: 'Hi' }
    const whole = await openaiClient(body('plain-text', openai), 'application/json').completions.create(asked)
    const stream = await openaiClient(frames('plain-text', openai).join('')).completions.create({
      ...asked,
      stream: true,
    })
    let text = ''
    const ends: unknown[] = []
    for await (const { choices, object } of stream) {
      expect(object).toBe('text_completion')
      text += choices[0]?.text ?? ''
      ends.push(choices[0]?.finish_reason)
    }
    expect(text).toBe(whole.choices[0]!.text)
    expect(whole.choices[0]!.finish_reason).toBe('stop')
    expect(ends.slice(-2)).toEqual(['stop', undefined])
  })
})
