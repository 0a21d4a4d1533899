/** The provider packages, and which variables of the environment each listens to. */
import type { LanguageModelV4 } from '@ai-sdk/provider'
import { withCalledTools } from './declare-called.ts'
import type { ReadLimits } from '../outside/read-limits.ts'
import { createProviderFetch } from './provider-fetch.ts'

/** What a server speaks; each is served by the AI SDK package of that name. */
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
}

/** Imports the package and makes the model. */
export async function loadModel({
  provider,
  modelId,
  protocol,
  apiKey,
  baseURL,
  limits,
}: LoadOptions): Promise<LanguageModelV4> {
  const fetch = createProviderFetch({
    who: `${provider}:${modelId}`,
    ...(limits === undefined ? undefined : { limits }),
  })
  // Without a key given, these packages read their own variable of the environment: another server must never get it.
  const settings =
    apiKey === undefined ? { baseURL, apiKey: 'none', fetch: withoutKey(fetch) } : { baseURL, apiKey, fetch }
  switch (protocol) {
    case 'google': {
      const { createGoogle } = await import('@ai-sdk/google')
      return createGoogle(settings)(modelId)
    }
    case 'anthropic': {
      const { createAnthropic } = await import('@ai-sdk/anthropic')
      return withCalledTools(createAnthropic(settings)(modelId))
    }
    case 'openai-responses': {
      const { createOpenAI } = await import('@ai-sdk/openai')
      return createOpenAI(settings).responses(modelId)
    }
    case 'openai-chat': {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
      // Without `includeUsage` these servers do not say what a stream has cost; without structured outputs they would
      // not be told the shape that an answer must have.
      const asked = { includeUsage: true, supportsStructuredOutputs: true }
      const settings = { name: provider, baseURL: baseURL!, apiKey, fetch, ...asked }
      return createOpenAICompatible(settings)(modelId)
    }
  }
}

const keyHeaders = ['authorization', 'x-api-key', 'x-goog-api-key']

/** A server that wants no key may refuse one that means nothing. */
function withoutKey(send: typeof fetch): typeof fetch {
  return (input, init) => {
    const headers = new Headers(init?.headers)
    for (const name of keyHeaders) headers.delete(name)
    return send(input, { ...init, headers })
  }
}
