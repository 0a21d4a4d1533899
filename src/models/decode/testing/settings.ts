/** The packages and decoders of OpenAI's responses and Google's generate-content, ready to be compared. */
import { createGoogle } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { createGoogleDecoder } from '../google/decoder.ts'
import { createResponsesDecoder } from '../responses/decoder.ts'
import type { Setting } from './play-both.ts'

type Options = Partial<LanguageModelV4CallOptions>

const base = { apiKey: 'test', baseURL: 'http://127.0.0.1/v1' }
const inputSchema = { type: 'object' as const, properties: {} }

/** `tools`: names of the user's functions. */
export function callOf(tools: readonly string[], options: Options = {}): LanguageModelV4CallOptions {
  return {
    prompt: [{ role: 'user', content: [{ type: 'text', text: 'What now?' }] }],
    ...(tools.length > 0 && { tools: tools.map((name) => ({ type: 'function', name, inputSchema })) }),
    ...options,
  }
}

export function responsesSetting(call: LanguageModelV4CallOptions): Setting {
  return {
    call,
    headers: { 'x-request-id': 'r1' },
    model: (fetch) => createOpenAI({ ...base, fetch }).responses('gpt-5'),
    decoder: (request, emit) =>
      createResponsesDecoder({
        emit,
        request,
        call,
        provider: 'openai.responses',
        warnings: [],
        includeRawChunks: call.includeRawChunks ?? false,
        who: 'openai:gpt-5',
      }),
  }
}

export function googleSetting(call: LanguageModelV4CallOptions, modelId = 'gemini-3-pro-preview'): Setting {
  return {
    call,
    headers: { 'x-gemini-service-tier': 'standard' },
    model: (fetch) => createGoogle({ ...base, fetch })(modelId),
    decoder: (request, emit) =>
      createGoogleDecoder({
        emit,
        request,
        call,
        provider: 'google.generative-ai',
        warnings: [],
        includeRawChunks: call.includeRawChunks ?? false,
        who: `google:${modelId}`,
      }),
  }
}
