/**
 * Reads the answer of a model server: bytes in, the parts that `doStream` of the AI SDK's package would emit out, at once and in
 * the same order. There is no stream and no promise on the way, and most chunks meet no schema. The packages still build the request
 * and read refusals.
 */
import type { LanguageModelV4StreamPart, SharedV4Warning } from '@ai-sdk/provider'
import type { ReadLimits } from '../outside/read-limits.ts'

/*
 * Where a decoder differs from its package, with the reason:
 * - After a failure inside an event (a tool call without a name, a result without its call) it has emitted everything before the
 *   failure. The package's stream drops the parts that it had queued when it failed. The error is the same.
 * - Two byte order marks at the start, the first one cut between two pieces: Node's stream decoder drops both, ours the first.
 * - An event or a line above the limit is an error. The packages have no limit; `provider-fetch.ts` had it for them.
 * - A `raw` usage that nobody counted (Anthropic's `message_stop` without a `message_delta`) stays as it was. The package's is its
 *   counter, which a second message in the same answer changes.
 * - OpenAI's responses: the first parts are emitted with the next event, not 50 ms after `response.in_progress`, because a decoder
 *   has no clock of its own. Pushing no bytes emits them too: see `responses/hold.ts`.
 * - Google: the package itself sends the further requests of a long answer. Here whoever drives the decoder does (`GoogleDecoder`).
 * - No `raw` parts: nothing of ours asks for them.
 * - Not for `openai-compatible` models with their own `metadataExtractor`, `errorStructure` or `convertUsage`, nor for `anthropic`
 *   models with another name or with provider tools (`anthropicFactsOf` says so). The package reads those.
 */

/**
 * One answer's stream. Pure: it knows neither the connection nor the clock.
 *
 * `push` and `end` throw where the package's stream would break off (or where `doStream` itself would reject: then nothing has been
 * emitted yet). What was emitted before stays valid; the decoder must not be used afterwards.
 */
export interface StreamDecoder {
  /** The next bytes of the body. They may split lines and characters anywhere. */
  push(bytes: Uint8Array): void
  /** The body ended: emits what the package emits then. Not for a broken connection. */
  end(): void
}

/** What every decoder needs to know of the request. */
export interface DecoderOptions {
  /** Called synchronously, in order. `stream-start` may come before the first bytes. */
  emit(part: LanguageModelV4StreamPart): void
  /** Of the request. The package's `stream-start` has them. */
  warnings: SharedV4Warning[]
  /** Subject of error messages: `openai:gpt-5`. */
  who: string
  limits?: ReadLimits | undefined
  /** For parts that the provider sends without an id. Default: the AI SDK's. */
  generateId?: () => string
}

/** What the package's `APICallError` says about the request, when the stream has an error in place of an answer. */
export interface RequestFacts {
  url: string
  body: unknown
  responseHeaders?: Record<string, string>
}
