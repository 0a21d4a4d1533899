/** Both readings of Anthropic's messages. */
import { createAnthropic } from '@ai-sdk/anthropic'
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { anthropicFactsOf } from '../anthropic-facts.ts'
import { createAnthropicDecoder } from '../anthropic.ts'
import { warningsOf, type Readers } from './chat-readers.ts'
import { hearDecoder, hearPackage, prompt, responseHeaders, url } from './oracle.ts'

export const anthropic: Readers = {
  name: 'anthropic',
  theirs: (pieces, options) =>
    hearPackage(
      pieces,
      (fetch) => createAnthropic({ baseURL: url, apiKey: 'test', fetch })('claude-sonnet-4-5'),
      options,
    ),
  ours: (pieces, theirs, options = {}) =>
    hearDecoder(pieces, (emit) => {
      const body = theirs.body as object
      const facts = anthropicFactsOf({ prompt, ...options }, body)!
      const request = { url: `${url}/messages`, body, responseHeaders }
      const { includeRawChunks = false } = options
      return createAnthropicDecoder({ emit, who: 'it', includeRawChunks, warnings: warningsOf(theirs), request, facts })
    }),
}

const schema = { type: 'object' as const, properties: { a: { type: 'number' as const } } }
const file = (mediaType: string, filename?: string) => ({
  type: 'file' as const,
  mediaType,
  data: { type: 'data' as const, data: Buffer.from('text').toString('base64') },
  ...(filename === undefined ? undefined : { filename }),
  providerOptions: { anthropic: { citations: { enabled: true } } },
})

/** Requests that change how the answer is read. */
export const anthropicOptions: Record<string, Partial<LanguageModelV4CallOptions>> = {
  'a plain request': {},
  'an answer with a schema, as a tool': {
    responseFormat: { type: 'json', schema },
    providerOptions: { anthropic: { structuredOutputMode: 'jsonTool' } },
  },
  'an answer with a schema': { responseFormat: { type: 'json', schema } },
  'documents and pings': {
    prompt: [{ role: 'user', content: [file('application/pdf', 'a.pdf'), file('text/plain'), file('image/png')] }],
    providerOptions: { anthropic: { includePings: true } },
  },
  'raw chunks': { includeRawChunks: true },
}
