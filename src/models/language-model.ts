/** The models that agents call: the AI SDK's interface, the resolution of names, and prices. */
import type { LanguageModelV2, LanguageModelV3, LanguageModelV4 } from '@ai-sdk/provider'
import type { NamedModel } from './model-error.ts'
import type { CacheSetting } from './prompt-cache.ts'

/** A model of the AI SDK, of any provider package: specification V2, V3 or V4. */
export type LanguageModel = LanguageModelV2 | LanguageModelV3 | LanguageModelV4

/** USD per million tokens. */
export interface Pricing {
  input: number
  output: number
  /** Input that the provider read from its cache. Default: `input`. */
  cachedInput?: number
  /** Input that the provider wrote to its cache. Default: `input`. */
  cacheWriteInput?: number
  /** Output that is reasoning. Default: `output`. */
  reasoning?: number
}

export interface ModelResolver {
  /** Used for steps that name no model. */
  readonly defaultModel?: string
  /** Prompt caching of steps that do not set it. Default: `auto`. */
  readonly cache?: CacheSetting
  /** Tokens of the windows of models, by name. */
  readonly windows?: ReadonlyMap<string, number>
  /** The prefixes that may come before the colon. */
  readonly providers: readonly string[]
  /** Throws `unknown-model` or `missing-key` before anything is sent. */
  resolve(name: string): LanguageModel
}

export type LazyModel = LanguageModelV4 &
  NamedModel & {
    /** The model itself. */
    load(): Promise<LanguageModelV4>
  }

/** A model whose package is loaded on first use. Errors and traces use `name`. */
export function createLazyModel(name: NamedModel, load: () => Promise<LanguageModelV4>): LazyModel {
  let loading: Promise<LanguageModelV4> | undefined
  const model = () => (loading ??= load())
  return {
    ...name,
    specificationVersion: 'v4',
    load: model,
    get supportedUrls() {
      return model().then(({ supportedUrls }) => supportedUrls)
    },
    doGenerate: async (options) => (await model()).doGenerate(options),
    doStream: async (options) => (await model()).doStream(options),
  }
}
