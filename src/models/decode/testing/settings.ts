/** Each package with its decoder, and requests that change how an answer is read. */
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogle } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import type { Protocol } from '../../testing/recorded-provider.ts'
import { createAnthropicDecoder } from '../anthropic/decoder.ts'
import { anthropicFactsOf } from '../anthropic/facts.ts'
import { createCompatibleDecoder, metadataKeyOf } from '../chat/openai-compatible.ts'
import { createGoogleDecoder } from '../google/decoder.ts'
import { createResponsesDecoder } from '../responses/decoder.ts'
import type { Setting } from './play-both.ts'

type Call = LanguageModelV4CallOptions

const base = { apiKey: 'test', baseURL: 'http://127.0.0.1/v1' }
const inputSchema = { type: 'object' as const, properties: {} }

/** `tools`: names of the user's functions. */
export function callOf(tools: readonly string[], options: Partial<Call> = {}): Call {
  return {
    prompt: [{ role: 'user', content: [{ type: 'text', text: 'What now?' }] }],
    ...(tools.length > 0 && { tools: tools.map((name) => ({ type: 'function', name, inputSchema })) }),
    ...options,
  }
}

function compatibleSetting(call: Call): Setting {
  const metadataKey = metadataKeyOf('my-server.chat', call.providerOptions)
  return {
    name: `openai-compatible (${metadataKey})`,
    call,
    model: (fetch) => createOpenAICompatible({ ...base, name: 'my-server', includeUsage: true, fetch })('m'),
    decoder: (options) => createCompatibleDecoder({ ...options, metadataKey }),
  }
}

function anthropicSetting(call: Call, name = 'anthropic'): Setting {
  return {
    name,
    call,
    model: (fetch) => createAnthropic({ ...base, fetch })('claude-sonnet-4-5'),
    decoder(options) {
      const facts = anthropicFactsOf(call, options.request.body as object)!
      return createAnthropicDecoder({ ...options, facts })
    },
  }
}

function responsesSetting(call: Call, name = 'openai'): Setting {
  return {
    name: `${name}.responses`,
    call,
    headers: { 'x-request-id': 'r1' },
    model: (fetch) => createOpenAI({ ...base, name, fetch }).responses('gpt-5'),
    decoder: (options) => createResponsesDecoder({ ...options, call, provider: `${name}.responses`, now: () => 0 }),
  }
}

function googleSetting(call: Call, modelId = 'gemini-3-pro-preview', provider = 'google.generative-ai'): Setting {
  return {
    name: `${provider} ${modelId}`,
    call,
    headers: { 'x-gemini-service-tier': 'standard' },
    model: (fetch) => createGoogle({ ...base, name: provider, fetch })(modelId),
    decoder: (options) => createGoogleDecoder({ ...options, call, provider }),
  }
}

const tools = ['lookup', 'add']
const schema = { type: 'object' as const, properties: { a: { type: 'number' as const } } }
const responseFormat = { type: 'json' as const, schema }
const providedTool = (id: `${string}.${string}`, name: string, args = {}) => ({
  type: 'provider' as const,
  id,
  name,
  args,
})
const file = (mediaType: string, filename?: string) => ({
  type: 'file' as const,
  mediaType,
  data: { type: 'data' as const, data: Buffer.from('text').toString('base64') },
  ...(filename === undefined ? undefined : { filename }),
  providerOptions: { anthropic: { citations: { enabled: true } } },
})
const user = { role: 'user' as const, content: [{ type: 'text' as const, text: 'Hi' }] }
const approved = {
  type: 'tool-call' as const,
  toolCallId: 'approved',
  toolName: 'mcp.x',
  input: {},
  providerOptions: { openai: { approvalRequestId: 'a' } },
}

/** Of the plain requests of a fixture. */
export function plainSettings(protocol: Protocol, names: readonly string[]): Setting[] {
  const call = callOf(names)
  switch (protocol) {
    case 'openai-chat':
      return [compatibleSetting(call)]
    case 'anthropic':
      return [anthropicSetting(call)]
    case 'openai-responses':
      return [responsesSetting(call)]
    case 'google':
      return [googleSetting(call)]
  }
}

/** Other requests. */
export const otherSettings: Record<Protocol, Setting[]> = {
  'openai-chat': [compatibleSetting(callOf(tools, { providerOptions: { myServer: {} } }))],
  anthropic: [
    anthropicSetting(
      callOf([], { responseFormat, providerOptions: { anthropic: { structuredOutputMode: 'jsonTool' } } }),
      'an answer with a schema, as a tool',
    ),
    anthropicSetting(callOf(tools, { responseFormat }), 'an answer with a schema'),
    anthropicSetting(
      callOf([], {
        prompt: [{ role: 'user', content: [file('application/pdf', 'a.pdf'), file('text/plain'), file('image/png')] }],
        providerOptions: { anthropic: { includePings: true } },
      }),
      'documents and pings',
    ),
  ],
  'openai-responses': [
    responsesSetting(callOf(tools, { providerOptions: { openai: { store: true, logprobs: 2 } } })),
    responsesSetting(callOf([], { providerOptions: { azure: { store: true } } }), 'azure'),
    responsesSetting(
      callOf([], {
        tools: [
          providedTool('openai.web_search', 'search'),
          providedTool('openai.code_interpreter', 'python'),
          providedTool('openai.shell', 'bash', { environment: { type: 'containerAuto' } }),
        ],
        prompt: [user, { role: 'assistant', content: [approved] }],
      }),
    ),
  ],
  google: [
    googleSetting(callOf(tools), 'gemini-3-pro-preview', 'google.vertex.chat'),
    googleSetting(callOf(tools, { responseFormat }), 'gemini-2.5-flash'),
    googleSetting(callOf([], { tools: [providedTool('google.code_execution', 'python')] }), 'gemini-2.5-flash'),
  ],
}
