import { jsonSchema } from 'ai'
import { MockLanguageModelV3, simulateReadableStream } from 'ai/test'
import type { LanguageModelV2 } from '@ai-sdk/provider'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import type { Message } from '../part/message.ts'
import type { ModelPart } from '../part/model-part.ts'
import { streamModel, type ModelCall } from './model.ts'
import { parseToolInput, toToolSpec } from '../tools/tool-input.ts'
import type { LanguageModel } from './language-model.ts'
import { createScriptedModel, finish, text, throws } from './testing/scripted-model.ts'

async function ask(model: LanguageModel, call: Partial<ModelCall> = {}): Promise<ModelPart[]> {
  const parts: ModelPart[] = []
  const messages: Message[] = [{ role: 'user', content: 'Hi' }]
  await streamModel(model, { messages, signal: new AbortController().signal, ...call }, (part) => parts.push(part))
  return parts
}

describe('streamModel', () => {
  test('the provider is told everything a call says', async () => {
    const model = createScriptedModel([[finish()]])
    const settings = {
      temperature: 0.5,
      maxOutputTokens: 9,
      topP: 0.9,
      stopSequences: ['x'],
      seed: 1,
      reasoning: 'low' as const,
      headers: { 'x-a': 'b' },
      providerOptions: { openai: { store: false } },
      responseFormat: { type: 'json' as const },
    }
    const inputSchema = { type: 'object', properties: {} }
    const messages: Message[] = [
      {
        role: 'user',
        id: 'u1',
        content: [
          { type: 'text', text: 'See' },
          { type: 'file', mediaType: 'image/png', data: 'AQI=' },
        ],
      },
      {
        role: 'assistant',
        id: 'run1',
        content: [
          { type: 'reasoning', text: 'hm', providerOptions: { anthropic: { signature: 'sig==' } } },
          {
            type: 'tool-call',
            toolCallId: 'c1',
            toolName: 't',
            input: { a: 1 },
            providerOptions: { google: { thoughtSignature: 's' } },
          },
        ],
      },
      {
        role: 'tool',
        content: [{ type: 'tool-result', toolCallId: 'c1', toolName: 't', output: { type: 'json', value: [1] } }],
      },
    ]
    await ask(model, {
      ...settings,
      messages,
      system: 'Be brief.',
      tools: [{ name: 't', description: 'd', inputSchema }],
      toolChoice: { tool: 't' },
    })
    expect(model.calls[0]?.options).toMatchObject({
      ...settings,
      tools: [{ type: 'function', name: 't', description: 'd', inputSchema }],
      toolChoice: { type: 'tool', toolName: 't' },
      prompt: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See' },
            { type: 'file', data: { type: 'data', data: 'AQI=' } },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'reasoning', text: 'hm', providerOptions: { anthropic: { signature: 'sig==' } } },
            { type: 'tool-call', input: { a: 1 }, providerOptions: { google: { thoughtSignature: 's' } } },
          ],
        },
        { role: 'tool', content: [{ type: 'tool-result', output: { type: 'json', value: [1] } }] },
      ],
    })
  })

  test('system messages among the others stay where they are', async () => {
    const model = createScriptedModel([[finish()]])
    const messages: Message[] = [
      { role: 'user', content: 'Hi' },
      { role: 'system', content: 'Be kind.' },
    ]
    await ask(model, { messages })
    expect(model.calls[0]?.options.prompt.map(({ role }) => role)).toEqual(['user', 'system'])
  })

  test('no tools and no choice are said as the SDK says them', async () => {
    const model = createScriptedModel([[finish()], [finish()]])
    await ask(model, { tools: [] })
    await ask(model, { toolChoice: 'none' })
    expect(model.calls.map(({ options }) => [options.tools, options.toolChoice])).toEqual([
      [undefined, { type: 'auto' }],
      [undefined, { type: 'none' }],
    ])
  })

  test('messages that make no sense are refused before the provider is asked', async () => {
    const model = createScriptedModel([])
    const call = { type: 'tool-call' as const, toolCallId: 'c1', toolName: 't', input: {} }
    const messages: Message[] = [
      { role: 'assistant', content: [call] },
      { role: 'user', content: 'and?' },
    ]
    for (const wrong of [messages, []]) {
      await expect(ask(model, { messages: wrong })).rejects.toMatchObject({ code: 'invalid-messages', status: 400 })
    }
    expect(model.calls).toHaveLength(0)
  })

  test('a refusal says so', async () => {
    const model = createScriptedModel([[throws(Object.assign(new Error('no'), { statusCode: 403 }))]])
    await expect(ask(model)).rejects.toMatchObject({ code: 'model-refused', status: 403 })
  })

  test('V3 models are models', async () => {
    const usage = {
      inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 1, text: 1, reasoning: 0 },
    }
    const model = new MockLanguageModelV3({
      doStream: {
        stream: simulateReadableStream({
          chunks: [
            { type: 'text-start', id: 'a' },
            { type: 'text-delta', id: 'a', delta: 'Hi' },
            { type: 'text-end', id: 'a' },
            { type: 'file', mediaType: 'image/png', data: 'AQI=' },
            { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage },
          ],
        }),
      },
    })
    const parts = await ask(model)
    expect(parts.map(({ type }) => type)).toEqual(['text-start', 'text-delta', 'text-end', 'file', 'finish'])
    expect(parts[3]).toEqual({ type: 'file', mediaType: 'image/png', data: 'AQI=' })
    expect(model.doStreamCalls[0]?.prompt[0]).toMatchObject({ role: 'user', content: [{ type: 'text', text: 'Hi' }] })
  })

  test('V2 models are models', async () => {
    // The SDK prints a line about every old model otherwise.
    globalThis.AI_SDK_LOG_WARNINGS = false
    const model: LanguageModelV2 = {
      specificationVersion: 'v2',
      provider: 'old',
      modelId: 'm',
      supportedUrls: {},
      doGenerate: () => Promise.reject(new Error('unused')),
      doStream: async () => ({
        stream: new ReadableStream({
          start(controller) {
            controller.enqueue({ type: 'text-start', id: 'a' })
            controller.enqueue({ type: 'text-delta', id: 'a', delta: 'Hi' })
            controller.enqueue({ type: 'text-end', id: 'a' })
            const usage = { inputTokens: 1, outputTokens: 2, totalTokens: 3 }
            controller.enqueue({ type: 'finish', finishReason: 'stop', usage })
            controller.close()
          },
        }),
      }),
    }
    expect((await ask(model)).at(-1)).toMatchObject({
      type: 'finish',
      finishReason: { unified: 'stop' },
      usage: { inputTokens: { total: 1 }, outputTokens: { total: 2 } },
    })
  })

  test('a call ends when the last part has been read', async () => {
    const parts = await ask(createScriptedModel([[text('a'), finish('length')]]))
    expect(parts.at(-1)).toMatchObject({ type: 'finish', finishReason: { unified: 'length' } })
  })

  const byZod = {
    parameters: z.object({ city: z.string(), days: z.number().int().default(1) }),
    description: 'Weather',
  }
  const bySdk = {
    parameters: jsonSchema({ type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }),
  }
  const byHand = { parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } }

  test.each([
    ['zod', byZod],
    ['jsonSchema', bySdk],
    ['plain JSON Schema', byHand],
  ])('a tool described by %s', async (_, implementation) => {
    const spec = await toToolSpec('weather', implementation)
    expect(spec).toMatchObject({
      name: 'weather',
      inputSchema: { type: 'object', properties: { city: { type: 'string' } } },
    })
    expect((await toToolSpec('weather', implementation, 'Mine')).description).toBe('Mine')
    expect(await parseToolInput(implementation, '{"city":"Rome"}')).toMatchObject({ ok: true, value: { city: 'Rome' } })
    expect(await parseToolInput(implementation, '{"city":5}')).toEqual({
      ok: false,
      error: expect.stringMatching(/city: .*string/),
    })
    expect(await parseToolInput(implementation, '')).toEqual({ ok: false, error: expect.stringContaining('city') })
  })

  test.each([
    ['an old draft', { definitions: { A: { type: 'string' } }, properties: { a: { $ref: '#/definitions/A' } } }],
    ['a new draft', { $defs: { A: { type: 'string' } }, properties: { a: { $ref: '#/$defs/A' } } }],
  ])('references of %s are followed', async (_, schema) => {
    const tool = { parameters: { type: 'object', ...schema } }
    expect(await parseToolInput(tool, '{"a":"x"}')).toEqual({ ok: true, value: { a: 'x' } })
    expect(await parseToolInput(tool, '{"a":1}')).toEqual({ ok: false, error: expect.stringContaining('a: ') })
  })

  test('a schema that cannot be read here is left to the model', async () => {
    const tool = { parameters: { type: 'object', properties: { a: { $ref: 'https://example.com/a' } } } }
    expect(await parseToolInput(tool, '{"a":1}')).toEqual({ ok: true, value: { a: 1 } })
  })

  test("the schema's own changes reach the tool", async () => {
    expect(await parseToolInput(byZod, '{"city":"Rome","other":1}')).toEqual({
      ok: true,
      value: { city: 'Rome', days: 1 },
    })
    expect((await toToolSpec('weather', byZod)).description).toBe('Weather')
  })

  test('a tool without parameters takes nothing', async () => {
    const tool = { parameters: undefined }
    expect(await toToolSpec('t', tool)).toEqual({ name: 't', inputSchema: expect.objectContaining({ type: 'object' }) })
    expect(await parseToolInput(tool, ' \n')).toEqual({ ok: true, value: {} })
  })

  test('another Standard Schema is enforced', async () => {
    const parameters = {
      '~standard': {
        version: 1,
        vendor: 'mine',
        validate: (value: object) => ('a' in value ? { value } : { issues: [{ message: 'missing', path: ['a'] }] }),
        jsonSchema: { input: () => ({ type: 'object' }) },
      },
    }
    expect(await toToolSpec('t', { parameters })).toMatchObject({ inputSchema: { type: 'object' } })
    expect(await parseToolInput({ parameters }, '{"a":1}')).toEqual({ ok: true, value: { a: 1 } })
    expect(await parseToolInput({ parameters }, '{}')).toEqual({
      ok: false,
      error: expect.stringContaining('a: missing'),
    })
  })

  test.each([
    ['{"city":', 'not valid JSON'],
    ['Rome', 'not valid JSON'],
    ['{"city":"x","__proto__":{"a":1}}', '__proto__'],
    ['{"city":"x","\\u005f_proto__":{"a":1}}', '__proto__'],
    ['[]', 'expected object'],
  ])('%s is refused', async (input, reason) => {
    expect(await parseToolInput(byZod, input)).toEqual({ ok: false, error: expect.stringContaining(reason) })
  })

  test('a schema that checks by throwing is an error for the model, not for us', async () => {
    const parameters = z.object({ a: z.string() }).refine(() => {
      throw new Error('boom')
    })
    expect(await parseToolInput({ parameters }, '{"a":"x"}')).toEqual({
      ok: false,
      error: expect.stringContaining('boom'),
    })
  })

  test('a schema that JSON Schema cannot say names its tool', async () => {
    await expect(toToolSpec('when', { parameters: z.object({ at: z.date() }) })).rejects.toMatchObject({
      code: 'invalid-tool',
      message: expect.stringContaining('"when"'),
    })
  })

  test.each([
    ['http://169.254.169.254/latest/meta-data', 'text/plain'],
    ['https://files.example/a.png', 'image/png'],
    ['ftp://files.example/a.png', 'image/png'],
  ])('a file is never fetched for a model that does not take its address: %s', async (data, mediaType) => {
    const fetched: unknown[] = []
    const { fetch } = globalThis
    globalThis.fetch = async (url) => (fetched.push(url), new Response('secret', { status: 418 }))
    try {
      const asked = ask(createScriptedModel([[finish()]]), {
        messages: [{ role: 'user', content: [{ type: 'file', mediaType, data }] }],
      })
      const message = expect.stringContaining('by URL. Send the file as a data: URL.')
      await expect(asked).rejects.toMatchObject({ code: 'bad-input', status: 400, message })
      expect(fetched).toEqual([])
    } finally {
      globalThis.fetch = fetch
    }
  })

  test('a data: URL, and an address that the model takes itself, reach it', async () => {
    const model = createScriptedModel([[finish()]])
    Object.assign(model, { supportedUrls: { 'image/*': [/^https:\/\/files\.example\//] } })
    await ask(model, {
      messages: [
        {
          role: 'user',
          content: ['data:image/png;base64,AQI=', 'https://files.example/a.png'].map((data) => {
            return { type: 'file', mediaType: 'image/png', data }
          }),
        },
      ],
    })
    expect(JSON.stringify(model.calls[0]!.options.prompt)).toMatch(/AQI=.*https:\/\/files\.example\/a\.png/)
  })
})
