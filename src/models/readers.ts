/** Creates the reader of each protocol. */
import type { AnswerReader, ReaderOptions } from './decode/answer-reader.ts'
import type { EndpointProtocol } from './providers.ts'

/** 16 characters, as in the package. */
const generateId = () => crypto.randomUUID().replaceAll('-', '').slice(0, 16)

/** The options for reading an answer. */
export type ReaderSettings = Omit<ReaderOptions, 'generateId'>

/** Google's long answers take several requests. */
export type ProtocolReader = AnswerReader & { continuation?(): string | undefined; continued?(): void }
export type CreateReader = (answer: ReaderSettings) => ProtocolReader

/** Imports only the protocol's modules. */
export async function loadReader(protocol: EndpointProtocol): Promise<CreateReader> {
  switch (protocol) {
    case 'google': {
      const { GoogleReader } = await import('./decode/google.ts')
      return (answer) => new GoogleReader({ ...answer, generateId })
    }
    case 'openai-responses': {
      const { ResponsesReader } = await import('./decode/responses.ts')
      return (answer) => new ResponsesReader({ ...answer, generateId })
    }
    case 'anthropic': {
      const { AnthropicReader } = await import('./decode/anthropic.ts')
      return (answer) => new AnthropicReader({ ...answer, generateId })
    }
    case 'openai-chat': {
      const { ChatReader } = await import('./decode/chat.ts')
      return (answer) => new ChatReader({ ...answer, generateId })
    }
  }
}
