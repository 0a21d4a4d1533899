/** The provider packages, and the environment variables for each. */
import type { LanguageModelV4 } from '@ai-sdk/provider'
import { omitUndefined } from '../part/omit-undefined.ts'
import { shapeCall, type CallShape } from './call-shape.ts'
import type { ReadLimits } from './limits/read-limits.ts'
import type { ShapedModel } from './part-sink.ts'
import { cacheWayOf, type CacheWay } from './prompt-cache.ts'
import { createDirectModel, type CreateModel } from './direct-model.ts'
import { loadReader } from './readers.ts'
import { createProviderFetch, createProviderOpen } from './provider-fetch.ts'

/** The protocol of a model server. Each uses the AI SDK package of that name. */
export type EndpointProtocol = 'openai-chat' | 'openai-responses' | 'anthropic' | 'google'

interface BuiltIn {
  protocol: EndpointProtocol
  /** The first that is set wins. */
  keyVariables: readonly string[]
  baseVariables: readonly string[]
}

export const builtIn: ReadonlyMap<string, BuiltIn> = new Map([
  ['google', variables('google', 'GOOGLE_GENERATIVE_AI', 'GEMINI')],
  ['openai', variables('openai-responses', 'OPENAI')],
  ['anthropic', variables('anthropic', 'ANTHROPIC')],
])

function variables(protocol: EndpointProtocol, ...names: string[]): BuiltIn {
  return {
    protocol,
    keyVariables: names.map((name) => `${name}_API_KEY`),
    baseVariables: names.map((name) => `${name}_BASE_URL`),
  }
}

/** `my-server` → `MY_SERVER_API_KEY`. */
export function endpointVariable(name: string): string {
  return `${name.toUpperCase().replaceAll('-', '_')}_API_KEY`
}

interface LoadOptions {
  provider: string
  modelId: string
  protocol: EndpointProtocol
  apiKey: string | undefined
  baseURL: string | undefined
  limits?: ReadLimits | undefined
  systemMessages?: SystemMessages | undefined
  /** Default: `millrace`. */
  decoder?: DecoderName | undefined
}

/**
 * The positions at which a server accepts system messages. `first`: later ones become text of the user. Default: `anywhere`, until the server
 * refuses one.
 */
export type SystemMessages = 'anywhere' | 'first'

/** The decoder of model servers' streams: Millrace itself, or the AI SDK's package. */
export type DecoderName = 'millrace' | 'package'

/** Imports the package and creates the model. */
export async function loadModel(options: LoadOptions): Promise<LanguageModelV4> {
  const { provider, modelId, protocol, limits, decoder, systemMessages } = options
  const shape: CallShape = { protocol, provider, laterAsUser: systemMessages === 'first', withoutCache: false }
  const cacheWay = cacheWayOf(protocol, options.baseURL)
  const create = await loadPackage(options)
  const how = omitUndefined({ who: `${provider}:${modelId}`, limits })
  if (decoder === 'package') return shaped(create(createProviderFetch(how)), shape, cacheWay)
  const createReader = await loadReader(protocol)
  return createDirectModel({ ...how, create, open: createProviderOpen(how), createReader, shape, cacheWay })
}

function shaped(
  model: LanguageModelV4,
  shape: CallShape,
  cacheWay: CacheWay | undefined,
): LanguageModelV4 & ShapedModel {
  return {
    cacheWay,
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: (call) => model.doGenerate(shapeCall(call, shape)),
    doStream: (call) => model.doStream(shapeCall(call, shape)),
  }
}

async function loadPackage({ provider, modelId, protocol, apiKey, baseURL }: LoadOptions): Promise<CreateModel> {
  // Without an `apiKey`, these packages read the provider's own environment variable and would send it to this server.
  const settingsOf = (fetch: typeof globalThis.fetch) =>
    apiKey === undefined ? { baseURL, apiKey: 'none', fetch: withoutKey(fetch) } : { baseURL, apiKey, fetch }
  switch (protocol) {
    case 'google': {
      const { createGoogle } = await import('@ai-sdk/google')
      return (fetch) => createGoogle(settingsOf(fetch))(modelId)
    }
    case 'anthropic': {
      const { createAnthropic } = await import('@ai-sdk/anthropic')
      return (fetch) => createAnthropic(settingsOf(fetch))(modelId)
    }
    case 'openai-responses': {
      const { createOpenAI } = await import('@ai-sdk/openai')
      return (fetch) => createOpenAI(settingsOf(fetch)).responses(modelId)
    }
    case 'openai-chat': {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
      // Without `includeUsage`, these servers report no usage for streams. Without structured outputs, the package would
      // not send them the answer's schema.
      const asked = { includeUsage: true, supportsStructuredOutputs: true }
      return (fetch) => createOpenAICompatible({ name: provider, baseURL: baseURL!, apiKey, fetch, ...asked })(modelId)
    }
  }
}

const keyHeaders = ['authorization', 'x-api-key', 'x-goog-api-key']

/** Removes the placeholder key: a server without authentication may reject it. */
function withoutKey(send: typeof fetch): typeof fetch {
  return (input, init) => {
    const headers = new Headers(init?.headers)
    for (const name of keyHeaders) headers.delete(name)
    return send(input, { ...init, headers })
  }
}
