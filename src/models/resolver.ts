/**
 * Resolves `provider:model` to a model. API keys are looked up at once, so that a missing one is reported before any request.
 * Provider packages and the demo model are loaded with the first call.
 */
import type { LanguageModelV4 } from '@ai-sdk/provider'
import { omitUndefined } from '../part/omit-undefined.ts'
import { MillraceError } from '../part/error.ts'
import type { Log } from '../part/log.ts'
import { recordedRun, type Recording } from '../part/recording.ts'
import type { CacheSetting } from './prompt-cache.ts'
import type { ReadLimits } from './limits/read-limits.ts'
import { takesOf } from './files.ts'
import { type LanguageModel, type ModelResolver, createLazyModel } from './language-model.ts'
import {
  builtIn,
  endpointVariable,
  loadModel,
  type DecoderName,
  type EndpointProtocol,
  type SystemMessages,
} from './providers.ts'
import { createRecordingModel } from './recording.ts'
import { ownValue } from '../part/own-value.ts'

/** A model server of your own: Ollama, vLLM, llama.cpp, a gateway. */
export interface Endpoint {
  /** The part of a model name before the colon. */
  name: string
  /** Including the version path: `http://localhost:11434/v1`. */
  baseURL: string
  /** Environment variable with the API key. A variable named here must be set. Default: `<NAME>_API_KEY`, if it is set. */
  apiKeyEnv?: string
  /** Default: `openai-chat`, which every OpenAI-compatible server supports. */
  protocol?: EndpointProtocol
  /** The positions at which the server accepts system messages. Default: `anywhere`, until it refuses one. */
  systemMessages?: SystemMessages
}

export interface ModelResolverOptions {
  env: Readonly<Record<string, string | undefined>>
  endpoints?: readonly Endpoint[]
  /** Custom providers. They take precedence over built-in providers of the same name. */
  providers?: ReadonlyMap<string, (modelId: string) => LanguageModel>
  defaultModel?: string
  cache?: CacheSetting
  windows?: ReadonlyMap<string, number>
  /** The decoder of model servers' streams. `MILLRACE_DECODER` in `env` takes precedence. Default: `millrace`. */
  decoder?: DecoderName
  /** Size limits for provider responses. */
  limits?: ReadLimits
  /** The log that `recording:<run>` reads runs from. */
  log?: Log
  /** Recordings that are stored elsewhere, by the name after `recording:`. They take precedence over the log's runs. */
  recordings?: (name: string) => Recording | undefined
  /** Called with the first call of a model server's model: names the decoder of its streams. */
  debug?: (line: string) => void
}

/** Maximum number of cached models. */
const maxCached = 100

/** Throws `invalid-endpoint` for an invalid endpoint. Caches up to 100 models. */
export function createModelResolver(options: ModelResolverOptions): ModelResolver {
  const { env, providers = new Map<string, never>(), defaultModel, cache, windows, limits, debug } = options
  const decoder = decoderIn(env) ?? options.decoder
  const endpoints = new Map<string, Endpoint>()
  for (const endpoint of options.endpoints ?? []) {
    checkEndpoint(endpoint, endpoints.has(endpoint.name) || providers.has(endpoint.name))
    endpoints.set(endpoint.name, endpoint)
  }
  const known = [...new Set([...providers.keys(), ...endpoints.keys(), ...builtIn.keys(), 'demo', 'recording'])]
  const models = new Map<string, LanguageModel>()

  function resolve(name: string): LanguageModel {
    const { provider, modelId } = split(name)
    const key = `${provider}:${modelId}`
    const model = models.get(key) ?? create(provider, modelId, name)
    // Model names may come from requests, so the cache must be bounded.
    if (models.size >= maxCached && !models.has(key)) models.delete(models.keys().next().value!)
    models.set(key, model)
    return model
  }

  function create(provider: string, modelId: string, name: string): LanguageModel {
    const custom = providers.get(provider)
    if (custom) return custom(modelId)
    const endpoint = endpoints.get(provider)
    if (endpoint) return fromEndpoint(endpoint, modelId, name)
    if (provider === 'demo') {
      if (modelId === 'assistant') return demoModel(delayOf(env['MILLRACE_DEMO_DELAY_MS']))
      throw new MillraceError('unknown-model', `There is no model "${name}"; the demo model is "demo:assistant".`)
    }
    if (provider === 'recording') {
      const recording = options.recordings?.(modelId) ?? (options.log && recordedRun(options.log, modelId))
      if (recording !== undefined) return createRecordingModel(recording)
      throw new MillraceError('unknown-model', `The model "${name}" needs a log to read that run from; none is set up.`)
    }
    const entry = builtIn.get(provider)
    if (entry === undefined) throw unknown(name)
    const { protocol, keyVariables } = entry
    const apiKey = keyOf(env, keyVariables)
    if (apiKey === undefined) throw missingKey(keyVariables, name)
    const baseURL = firstOf(env, entry.baseVariables)
    return lazy({ provider, modelId, keyVariables, protocol, apiKey, baseURL, limits, decoder, debug })
  }

  function fromEndpoint(endpoint: Endpoint, modelId: string, name: string): LanguageModel {
    const { name: provider, baseURL, apiKeyEnv, protocol = 'openai-chat', systemMessages } = endpoint
    const keyVariables = [apiKeyEnv ?? endpointVariable(provider)]
    const apiKey = keyOf(env, keyVariables)
    if (apiKey === undefined && apiKeyEnv !== undefined) throw missingKey(keyVariables, name)
    const isLocal = isLocalAddress(baseURL)
    return lazy({
      provider,
      modelId,
      keyVariables,
      protocol,
      apiKey,
      baseURL,
      limits,
      decoder,
      debug,
      isLocal,
      systemMessages,
    })
  }

  function unknown(name: string): MillraceError {
    return new MillraceError(
      'unknown-model',
      `There is no model "${name}". Write provider:model with one of these providers: ${known.join(', ')}; ` +
        'or a bare gemini-…, gpt-…, o…, claude-… name.',
    )
  }

  function split(name: string): { provider: string; modelId: string } {
    const colon = name.indexOf(':')
    const provider = colon < 0 ? providerOf(name) : name.slice(0, colon)
    const modelId = name.slice(colon + 1).trim()
    if (provider === undefined || modelId === '') throw unknown(name)
    return { provider: provider.trim(), modelId }
  }

  return omitUndefined({ defaultModel, cache, windows, providers: known, resolve })
}

type LoadOptions = Parameters<typeof loadModel>[0]

interface LazyOptions extends LoadOptions {
  keyVariables: readonly string[]
  isLocal?: boolean
  debug: ModelResolverOptions['debug']
}

function lazy(options: LazyOptions): LanguageModelV4 {
  const { provider, modelId, keyVariables, isLocal, protocol, decoder, debug } = options
  return createLazyModel(omitUndefined({ provider, modelId, keyVariables, isLocal, takes: takesOf(protocol) }), () => {
    const reader = decoder === 'package' ? 'the AI SDK package' : 'Millrace'
    debug?.(`debug: the streams of ${provider}:${modelId} (protocol ${protocol}) are read by ${reader}`)
    return loadModel(options)
  })
}

/** This machine, or a private network: Ollama, llama.cpp, LM Studio. */
function isLocalAddress(baseURL: string): boolean {
  const host = URL.parse(baseURL)?.hostname ?? ''
  return /^(localhost|127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|\[::1\]|\[f[cd])|\.(local|internal|localhost)$/.test(
    host,
  )
}

function demoModel(delayMs: number | undefined): LanguageModelV4 {
  const name = { provider: 'demo', modelId: 'assistant' }
  return createLazyModel(name, async () => (await import('./demo/demo.ts')).createDemoModel(omitUndefined({ delayMs })))
}

/** The provider of a bare model name from a well-known family. */
function providerOf(name: string): string | undefined {
  if (name.startsWith('gemini-')) return 'google'
  if (name.startsWith('claude-')) return 'anthropic'
  if (/^(gpt-|chatgpt-|o\d)/.test(name)) return 'openai'
  return undefined
}

function missingKey(variables: readonly string[], name: string): MillraceError {
  const [first, ...others] = variables
  return new MillraceError(
    'missing-key',
    `The model "${name}" needs a key: set ${[first, ...others].join(' or ')} in the environment.`,
  )
}

/** The value of the first variable that is set and not blank. */
function firstOf(env: ModelResolverOptions['env'], names: readonly string[]): string | undefined {
  return names.map((name) => ownValue(env, name)?.trim()).find((value) => value)
}

/** Like `firstOf`, for API keys. An invalid key is rejected here, because `fetch` would quote it in its error. */
function keyOf(env: ModelResolverOptions['env'], names: readonly string[]): string | undefined {
  const key = firstOf(env, names)
  if (key === undefined || !/[^\t\x20-\x7e\x80-\xff]/u.test(key)) return key
  const name = names.find((each) => ownValue(env, each)?.trim() === key)
  const what = 'contains a line break or another character that is not allowed in an API key'
  throw new MillraceError('bad-key', `The environment variable ${name} ${what}. Set it to the key only.`)
}

/** Throws `bad-value`: a typo must not silently select the default decoder. */
function decoderIn(env: ModelResolverOptions['env']): DecoderName | undefined {
  const value = firstOf(env, ['MILLRACE_DECODER'])
  if (value === undefined || value === 'millrace' || value === 'package') return value
  throw new MillraceError('bad-value', `MILLRACE_DECODER must be "millrace" or "package", not "${value}".`)
}

function delayOf(text: string | undefined): number | undefined {
  const delay = text === undefined || text.trim() === '' ? Number.NaN : Number(text)
  return delay >= 0 ? delay : undefined
}

function checkEndpoint({ name, baseURL }: Endpoint, taken: boolean): void {
  const fail = (reason: string) => {
    throw new MillraceError('invalid-endpoint', `The model endpoint "${name}" ${reason}`)
  }
  if (!/^[A-Za-z][\w-]*$/.test(name))
    fail('has an invalid name: start with a letter, then use letters, digits, - and _.')
  if (taken) fail('has the same name as another provider; choose another name.')
  if (builtIn.has(name) || name === 'demo' || name === 'recording')
    fail('has the name of a built-in provider; choose another name.')
  const url = URL.parse(baseURL)
  if (url === null || !/^https?:$/.test(url.protocol)) fail('needs a baseURL that starts with http:// or https://.')
}
