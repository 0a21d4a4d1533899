/** The interface between the reader of a model's connection and the run, for the parts of an answer. */
import type { CacheWay } from './prompt-cache.ts'
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'

/** No method throws. After `end` or `fail`, or once `isOver`, every call is ignored. */
export interface PartSink {
  part(part: LanguageModelV4StreamPart): void
  /** Call it after each batch of parts. While the returned promise is pending, do not read on. */
  ready(): Promise<void> | undefined
  /** Whether no more parts are needed. */
  isOver(): boolean
  end(): void
  /** `request`: the call failed before its answer began. `part`: the model sent the error instead of an answer. */
  fail(error: unknown, place: 'request' | 'stream' | 'part'): void
}

/** A model of a server, which adapts its calls to the server's protocol. */
export interface ShapedModel {
  /** How its server is told what to cache; undefined: it is not. */
  readonly cacheWay: CacheWay | undefined
}

/** A model that pushes the parts of its answer to a sink, many at once, without a stream and a promise for each. */
export interface DirectModel extends LanguageModelV4, ShapedModel {
  /** Calls the model; `abortSignal` is ignored. Returns the function that stops the call. */
  readInto(options: LanguageModelV4CallOptions, sink: PartSink): (reason: unknown) => void
}

export function isShaped(model: object): model is ShapedModel {
  return 'cacheWay' in model
}

export function isDirect(model: LanguageModelV4): model is DirectModel {
  return 'readInto' in model
}
