/** Both readings of OpenAI's chat completions. */
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { createOpenAIChatDecoder } from '../openai-chat.ts'
import { createCompatibleDecoder, metadataKeyOf } from '../openai-compatible.ts'
import { hearDecoder, hearPackage, responseHeaders, url, type Heard } from './oracle.ts'

export interface Readers {
  name: string
  theirs(pieces: Uint8Array[], options?: Partial<LanguageModelV4CallOptions>): Promise<Heard>
  ours(pieces: Uint8Array[], theirs: Heard, options?: Partial<LanguageModelV4CallOptions>): Heard
}

const apiKey = 'test'
const who = 'it'

/** Like the package's, but from what the test knows. */
const request = (body: unknown) => ({ url: `${url}/chat/completions`, body, responseHeaders })

/** What `stream-start` had. A rejected request has none. */
export const warningsOf = ({ parts: [first] }: Heard) => (first?.type === 'stream-start' ? first.warnings : [])

export const openAIChat: Readers = {
  name: 'openai',
  theirs: (pieces, options) =>
    hearPackage(pieces, (fetch) => createOpenAI({ baseURL: url, apiKey, fetch }).chat('m'), options),
  ours: (pieces, theirs, { includeRawChunks = false } = {}) =>
    hearDecoder(pieces, (emit) =>
      createOpenAIChatDecoder({
        emit,
        who,
        includeRawChunks,
        warnings: warningsOf(theirs),
        request: request(theirs.body),
      }),
    ),
}

export const compatible: Readers = {
  name: 'openai-compatible',
  theirs(pieces, options) {
    const settings = { name: 'my-server', baseURL: url, apiKey, includeUsage: true }
    return hearPackage(pieces, (fetch) => createOpenAICompatible({ ...settings, fetch })('m'), options)
  },
  ours: (pieces, theirs, { includeRawChunks = false, providerOptions } = {}) =>
    hearDecoder(pieces, (emit) => {
      const metadataKey = metadataKeyOf('my-server.chat', providerOptions)
      return createCompatibleDecoder({ emit, who, includeRawChunks, warnings: warningsOf(theirs), metadataKey })
    }),
}
