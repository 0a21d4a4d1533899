/** Where marks and keys of prompt caching go, without a server. */
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { describe, expect, test } from 'vitest'
import { cacheOptions, cacheWayOf, hasOurCache, isAboutCache, placeCache } from './prompt-cache.ts'

const prompt: LanguageModelV4CallOptions['prompt'] = [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }]

describe('cacheWayOf', () => {
  test('a chat endpoint gets a key only if it is OpenAI’s own host', () => {
    expect(cacheWayOf('openai-chat', 'https://api.openai.com/v1')).toBe('key')
    for (const other of ['https://api.openai.com.evil.example/v1', 'http://localhost:11434/v1', 'no url', undefined]) {
      expect(cacheWayOf('openai-chat', other), other).toBeUndefined()
    }
    expect(cacheWayOf('openai-responses', 'https://gateway.example/v1')).toBe('key')
    expect(cacheWayOf('anthropic', undefined)).toBe('mark')
    expect(cacheWayOf('google', undefined)).toBeUndefined()
  })
})

describe('placeCache', () => {
  const withKey = async (providerOptions: LanguageModelV4CallOptions['providerOptions'] = {}) => ({
    prompt,
    providerOptions: { ...providerOptions, ...(await cacheOptions({ setting: 'auto', conversation: 'x' }, 'key')) },
  })
  const chat = { protocol: 'openai-chat', optionsKey: 'mine', refused: false } as const

  test('puts the key of the chat protocol under the endpoint’s name, as the package sends it', async () => {
    const { providerOptions } = placeCache(await withKey({ mine: { top_k: 1 } }), chat)
    expect(providerOptions).toEqual({ mine: { top_k: 1, prompt_cache_key: expect.stringMatching(/^[\w-]{43}$/u) } })
  })

  test.each([
    ['under the endpoint’s name', { mine: { prompt_cache_key: 'own' } }],
    ['of the client’s request', { openai: { promptCacheKey: 'own' } }],
  ])('leaves a key %s alone', async (_, given) => {
    expect(placeCache(await withKey(given), chat).providerOptions).toEqual(given)
  })

  test('removes ours if the server refuses it, and leaves a call without it unchanged', async () => {
    const call = await withKey()
    expect(hasOurCache(call)).toBe(true)
    expect(placeCache(call, { ...chat, refused: true }).providerOptions).toEqual({})
    const other = { prompt, providerOptions: { mine: { a: 1 } } }
    expect(placeCache(other, chat)).toBe(other)
  })

  const own = { providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } } } as const
  const tool = { type: 'function', name: 'look', inputSchema: {} } as const
  test.each<[string, Partial<LanguageModelV4CallOptions>]>([
    ['a message', { prompt: [{ ...prompt[0]!, ...own }] }],
    ['a part', { prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi', ...own }] }] }],
    ['a tool', { tools: [{ ...tool, ...own }] }],
  ])('adds no mark to one on %s', async (_, given) => {
    const ours = await cacheOptions({ setting: 'auto', conversation: 'x' }, 'mark')
    const call = { prompt, ...given, providerOptions: ours }
    const placed = placeCache(call, { protocol: 'anthropic', optionsKey: '', refused: false })
    expect(placed).toEqual({ ...call, providerOptions: {} })
  })

  test('marks the end of the last call if this one has 20 blocks more', async () => {
    const ours = await cacheOptions({ setting: '1h', conversation: 'x' }, 'mark')
    const grown = (blocks: number): LanguageModelV4CallOptions['prompt'] => [
      ...prompt,
      {
        role: 'assistant',
        content: Array.from({ length: blocks - 1 }, (_, i) => ({ type: 'text' as const, text: `${i}` })),
      },
      { role: 'user', content: [{ type: 'text', text: 'More' }] },
    ]
    const marked = (blocks: number) =>
      placeCache(
        { prompt: grown(blocks), providerOptions: ours },
        { protocol: 'anthropic', optionsKey: '', refused: false },
      )
    const anthropic = { cacheControl: { type: 'ephemeral', ttl: '1h' } }
    expect(marked(19).prompt).toEqual(grown(19))
    expect(marked(20).prompt[0]).toEqual({ ...prompt[0], providerOptions: { anthropic } })
    expect(marked(20).providerOptions).toEqual({ anthropic })
  })
})

test('isAboutCache: only a refusal that names the mark or the key', () => {
  expect(isAboutCache(400, 'cache_control: Extra inputs are not permitted')).toBe(true)
  expect(isAboutCache(422, "unknown field 'prompt_cache_key'")).toBe(true)
  expect(isAboutCache(400, 'max_tokens is too large')).toBe(false)
  expect(isAboutCache(500, 'cache_control')).toBe(false)
})
