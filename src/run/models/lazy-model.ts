import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { NamedModel } from '../model-error.ts'

/** A model whose package is loaded with its first call. `name` is what errors and traces call it. */
export function createLazyModel(name: NamedModel, load: () => Promise<LanguageModelV4>): LanguageModelV4 & NamedModel {
  let loading: Promise<LanguageModelV4> | undefined
  const model = () => (loading ??= load())
  return {
    ...name,
    specificationVersion: 'v4',
    get supportedUrls() {
      return model().then(({ supportedUrls }) => supportedUrls)
    },
    doGenerate: async (options) => (await model()).doGenerate(options),
    doStream: async (options) => (await model()).doStream(options),
  }
}
