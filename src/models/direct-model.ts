/**
 * A provider package's model whose answers we read ourselves. The package builds the request and reads refusals; the decoder of its
 * protocol (`decode/`) reads the answer.
 *
 * For that, the package's `fetch` sends the request and then fails: `doStream` ends there. What it had prepared, the warnings and the
 * request's body, is noted where its `getArgs` returns. If the model refuses, `doStream` is called once more and gets the refusal. A
 * package that has no `getArgs`, or passes on another signal, reads the answer itself.
 */
import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { afterFirstDelta } from '../async/after-first-delta.ts'
import { callOf, DirectCall, requestSent, type CreateDecoder, type Prepared, type Target } from './direct-call.ts'
import { keepSettings } from './kept-settings.ts'
import type { DirectModel } from './part-sink.ts'
import type { Open } from './provider-fetch.ts'

/** Creates the package's model. `watch` must get the bare one. */
export type CreateModel = (
  fetch: typeof globalThis.fetch,
  watch: (bare: LanguageModelV4) => LanguageModelV4,
) => LanguageModelV4

export interface DirectModelOptions {
  create: CreateModel
  open: Open
  createDecoder: CreateDecoder
}

export function createDirectModel({ create, open, createDecoder }: DirectModelOptions): DirectModel {
  const send: typeof fetch = async (input, init = {}) => {
    const call = callOf(init.signal)
    if (call?.replay !== undefined) return (await call.replay).toResponse()
    const opened = open(input, init)
    if (call?.prepared === undefined) return (await opened).toResponse()
    call.onSent({ url: input instanceof Request ? input.url : String(input), init, opened })
    // Not at once: see decisions/0021.
    return new Promise((_, reject) => afterFirstDelta(() => reject(requestSent)))
  }

  const model = create(send, (bare) => {
    keepSettings(bare)
    notePreparations(bare, (signal, prepared) => {
      const call = callOf(signal)
      if (call !== undefined) call.prepared = prepared
    })
    return bare
  })

  const target: Target = { model, open, createDecoder }
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: (options) => model.doGenerate(options),
    doStream: (options) => model.doStream(options),
    readInto(options, sink) {
      const call = new DirectCall(target, options, sink)
      call.start()
      return (reason) => call.stop(reason)
    },
  }
}

/** Watches a method of the packages that their types do not show. */
function notePreparations(
  bare: LanguageModelV4,
  note: (signal: AbortSignal | undefined, prepared: Prepared) => void,
): void {
  const watched = bare as { getArgs?: (options: LanguageModelV4CallOptions, ...rest: unknown[]) => Promise<Prepared> }
  const { getArgs } = watched
  if (typeof getArgs !== 'function') return
  watched.getArgs = async (options, ...rest) => {
    const prepared = await getArgs.call(bare, options, ...rest)
    const isKnown = typeof prepared?.args === 'object' && Array.isArray(prepared.warnings)
    if (isKnown) note(options?.abortSignal, prepared)
    return prepared
  }
}
