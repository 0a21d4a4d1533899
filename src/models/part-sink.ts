/** How the parts of an answer get from whoever reads the model's connection to the run. */
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'

/** No method throws. After `end` or `fail`, or once `isOver`, every call is ignored. */
export interface PartSink {
  part(part: LanguageModelV4StreamPart): void
  /** Call it after each batch of parts. While the promise that it returns is pending, nothing more may be read. */
  ready(): Promise<void> | undefined
  /** Whether no more parts are needed. */
  isOver(): boolean
  end(): void
  /** `request`: the call failed before its answer began. `part`: the model sent the error in place of an answer. */
  fail(error: unknown, place: 'request' | 'stream' | 'part'): void
}

/** A model that hands the parts of its answer to a sink: many at once, without a stream and a promise for each. */
export interface DirectModel extends LanguageModelV4 {
  /** Calls the model; `abortSignal` is ignored. Returns the function that stops the call. */
  readInto(options: LanguageModelV4CallOptions, sink: PartSink): (reason: unknown) => void
}

export function isDirect(model: LanguageModelV4): model is DirectModel {
  return 'readInto' in model
}
