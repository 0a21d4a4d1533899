import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { NamedModel } from './model-error.ts'

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
