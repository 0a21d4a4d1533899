/** Creates the decoder of each protocol. */
import type { EndpointProtocol } from './providers.ts'
import type { CreateDecoder } from './direct-call.ts'
import type { ReadLimits } from './outside/read-limits.ts'

export interface DecoderContext {
  /** Subject of error messages: `openai:gpt-5`. */
  who: string
  limits: ReadLimits | undefined
}

/** Imports only what the protocol needs. */
export async function loadDecoder(protocol: EndpointProtocol, context: DecoderContext): Promise<CreateDecoder> {
  switch (protocol) {
    case 'google': {
      const { createGoogleDecoder } = await import('./decode/google/decoder.ts')
      return ({ options, ...answer }) => createGoogleDecoder({ ...context, ...answer, call: options })
    }
    case 'openai-responses': {
      const { createResponsesDecoder } = await import('./decode/responses/decoder.ts')
      return ({ options, ...answer }) => createResponsesDecoder({ ...context, ...answer, call: options })
    }
    case 'anthropic': {
      const [{ createAnthropicDecoder }, { anthropicFactsOf }] = await Promise.all([
        import('./decode/anthropic/decoder.ts'),
        import('./decode/anthropic/facts.ts'),
      ])
      return ({ options, ...answer }) => {
        const facts = anthropicFactsOf(options, answer.request.body as Record<string, unknown>)
        return facts && createAnthropicDecoder({ ...context, ...answer, facts })
      }
    }
    case 'openai-chat': {
      const { createCompatibleDecoder, metadataKeyOf } = await import('./decode/chat/openai-compatible.ts')
      return ({ options, provider, ...answer }) =>
        createCompatibleDecoder({
          ...context,
          ...answer,
          metadataKey: metadataKeyOf(provider, options.providerOptions),
        })
    }
  }
}
