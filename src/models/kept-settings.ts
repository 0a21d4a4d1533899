/**
 * The provider packages make the address and the headers of each request anew, though they come from settings that do not change.
 * For a short prompt that is half of what they do before the request, so the last ones are kept.
 *
 * A model's `config` is not in the packages' types. Without it nothing is kept.
 */
import type { LanguageModelV4 } from '@ai-sdk/provider'

interface Place {
  path: string
  modelId?: string
}

interface Config {
  url?: (place: Place) => string
  headers?: () => object
}

/** For a model whose key and base URL are texts. */
export function keepSettings(bare: LanguageModelV4): void {
  const { config } = bare as { config?: Config }
  if (typeof config?.headers === 'function') config.headers = keepHeaders(config.headers)
  if (typeof config?.url === 'function') config.url = keepUrl(config.url)
  // A getter that cuts it from the provider's name, and is read five times for a request.
  const { providerOptionsName: name } = bare as { providerOptionsName?: unknown }
  if (typeof name === 'string') Object.defineProperty(bare, 'providerOptionsName', { value: name })
}

function keepHeaders(make: () => object): () => object {
  let kept: object | undefined
  return () => (kept ??= Object.freeze(make()))
}

function keepUrl(make: (place: Place) => string): (place: Place) => string {
  let last: { path: string; modelId: string | undefined; url: string } | undefined
  return (place) => {
    const { path, modelId } = place
    if (last?.path !== path || last.modelId !== modelId) last = { path, modelId, url: make(place) }
    return last.url
  }
}
