/**
 * Provider streams for tests: a few written here, and real recordings if the checkout has them beside it. Each comes with a model
 * of the real provider package.
 */
import { existsSync, readFileSync } from 'node:fs'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogle } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModelV4 } from '@ai-sdk/provider'
import { readLines, type Protocol } from './recorded-provider.ts'

export interface ProviderFixture {
  name: string
  /** The package of the stream. Several use `openai-chat`. */
  provider: Protocol | 'openai-compatible'
  lines: string[]
  /** Names of the called tools. */
  tools: string[]
}

export function protocolOf({ provider }: ProviderFixture): Protocol {
  return provider === 'openai-compatible' ? 'openai-chat' : provider
}

export function createProviderModel({ provider }: ProviderFixture, baseURL: string): LanguageModelV4 {
  const settings = { baseURL, apiKey: 'test' }
  switch (provider) {
    case 'openai-chat':
      return createOpenAI(settings).chat('m')
    case 'openai-responses':
      return createOpenAI(settings).responses('m')
    case 'anthropic':
      return createAnthropic(settings)('m')
    case 'google':
      return createGoogle(settings)('m')
    case 'openai-compatible':
      return createOpenAICompatible({ name: 'local', ...settings, includeUsage: true })('m')
  }
}

const recordings = new URL('../../../../shared/fixtures/providers/', import.meta.url)
const index = new URL('index.json', recordings)

/** Empty if the recordings are not available. */
export function recordedFixtures(): ProviderFixture[] {
  if (!existsSync(index)) return []
  const rows = JSON.parse(readFileSync(index, 'utf8')) as Row[]
  return rows
    .filter(({ kind }) => kind === 'stream')
    .map(({ name, file, provider, expect }) => ({
      name,
      provider: provider === 'deepseek' ? 'openai-compatible' : provider,
      lines: readLines(new URL(file, recordings)),
      tools: [...new Set(expect.tools)],
    }))
}
interface Row {
  name: string
  file: string
  kind: string
  provider: ProviderFixture['provider'] | 'deepseek'
  expect: { tools: string[] }
}

const chat = (delta: object, rest: object = {}) => ({
  id: 'c',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta }],
  ...rest,
})
const chatEnd = (reason: string) => ({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason: reason }] })
const chatUsage = {
  id: 'c',
  choices: [],
  usage: { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14, prompt_tokens_details: { cached_tokens: 4 } },
}
const toolDelta = (index: number, rest: object) => chat({ tool_calls: [{ index, ...rest }] })

/** Non-ASCII text, so that byte cuts split characters. */
const composed: Record<string, [ProviderFixture['provider'], string[], object[]]> = {
  'chat text': [
    'openai-chat',
    [],
    [
      chat({ role: 'assistant', content: '' }),
      chat({ content: 'Grüße, ' }),
      chat({ content: '世界 🌍' }),
      chatEnd('stop'),
      chatUsage,
    ],
  ],
  'chat cut by length': ['openai-compatible', [], [chat({ content: 'so' }), chatEnd('length'), chatUsage]],
  'chat reasoning and two calls': [
    'openai-compatible',
    ['add', 'get'],
    [
      chat({ role: 'assistant', reasoning_content: 'Überlegen' }),
      chat({ reasoning_content: ' …' }),
      chat({ content: 'Let me see.' }),
      toolDelta(0, { id: 'call_a', type: 'function', function: { name: 'add', arguments: '' } }),
      toolDelta(0, { function: { arguments: '{"a":' } }),
      toolDelta(0, { function: { arguments: '1}' } }),
      toolDelta(1, { id: 'call_b', type: 'function', function: { name: 'get', arguments: '{"q":"é"}' } }),
      chatEnd('tool_calls'),
      chatUsage,
    ],
  ],
  'anthropic thinking, text, call': [
    'anthropic',
    ['get'],
    [
      {
        type: 'message_start',
        message: {
          id: 'msg',
          type: 'message',
          role: 'assistant',
          model: 'm',
          content: [],
          stop_reason: null,
          usage: { input_tokens: 7, output_tokens: 1, cache_read_input_tokens: 3 },
        },
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hmm ½' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'c2ln' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'ping' },
      { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Ça va' } },
      { type: 'content_block_stop', index: 1 },
      {
        type: 'content_block_start',
        index: 2,
        content_block: { type: 'tool_use', id: 'toolu_1', name: 'get', input: {} },
      },
      { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"q":"' } },
      { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '日本"}' } },
      { type: 'content_block_stop', index: 2 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 21 } },
      { type: 'message_stop' },
    ],
  ],
  'google thought, text, source, call': [
    'google',
    ['get'],
    [
      { candidates: [{ content: { role: 'model', parts: [{ text: 'Nachdenken', thought: true }] } }] },
      { candidates: [{ content: { role: 'model', parts: [{ text: 'Hier: ü' }] } }] },
      {
        candidates: [
          {
            content: {
              role: 'model',
              parts: [{ functionCall: { id: 'g1', name: 'get', args: { q: 'ü' } }, thoughtSignature: 'c2ln' }],
            },
          },
        ],
      },
      {
        candidates: [
          {
            content: { role: 'model', parts: [] },
            finishReason: 'STOP',
            groundingMetadata: { groundingChunks: [{ web: { uri: 'https://example.com/', title: 'Ex' } }] },
          },
        ],
        usageMetadata: { promptTokenCount: 6, candidatesTokenCount: 8, thoughtsTokenCount: 2, totalTokenCount: 16 },
      },
    ],
  ],
  'responses text with a citation': [
    'openai-responses',
    [],
    [
      { type: 'response.created', response: { id: 'resp', created_at: 1, model: 'm' } },
      { type: 'response.output_item.added', output_index: 0, item: { type: 'message', id: 'msg_1' } },
      { type: 'response.output_text.delta', item_id: 'msg_1', delta: 'Voilà ' },
      { type: 'response.output_text.delta', item_id: 'msg_1', delta: '✓' },
      {
        type: 'response.output_text.annotation.added',
        annotation: { type: 'url_citation', start_index: 0, end_index: 5, url: 'https://example.com/', title: 'Ex' },
      },
      { type: 'response.output_item.done', output_index: 0, item: { type: 'message', id: 'msg_1' } },
      {
        type: 'response.completed',
        response: {
          usage: {
            input_tokens: 4,
            output_tokens: 3,
            input_tokens_details: { cached_tokens: 1 },
            output_tokens_details: { reasoning_tokens: 0 },
          },
        },
      },
    ],
  ],
}

export const composedFixtures: ProviderFixture[] = Object.entries(composed).map(
  ([name, [provider, tools, chunks]]) => ({
    name,
    provider,
    tools,
    lines: chunks.map((chunk) => JSON.stringify(chunk)),
  }),
)
