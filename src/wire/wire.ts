/**
 * A wire turns a run's entries into one protocol's bytes.
 *
 * An encoder is a deterministic state machine over the entries of one run, starting with the first: the same entries always
 * produce the same text, however they are batched. To resume after entry k, pass entries 1…k to `skip` and the rest to
 * `encode`; so `prefix(k) + resume(k) = whole` for every k. For a client that reads a run from the start later, filter
 * the entries with `fold/superseded.ts`, so that it never sees a retracted attempt.
 */
import type { Entry } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import type { OpenAiOptions } from './openai/openai-output.ts'

/** Encodes one run for one client, entry by entry. */
export interface Encoder {
  /** The text to send for this entry, or `''`. Always `''` after the terminal frame. */
  encode(entry: Entry): string
  /** Advances over an entry that the client already has, without output. */
  skip(entry: Entry): void
  /** The terminal frame for a failure that is not in the log (the store failed, a cursor is refused). */
  fail(error: ErrorValue): string
  /**
   * `open` until the terminal frame, then `complete`. `broken` if the protocol has no frame for a failure: the server must then
   * abort the transfer, so that the client sees that it is incomplete.
   */
  readonly state: 'open' | 'complete' | 'broken'
}

/** What the client supports and asked for. */
export interface EncoderOptions {
  /**
   * The `seq` of the last `resume` when the reader connects. `suspend` entries before it do not end the stream. Default 0: the
   * first `suspend` ends it.
   */
  resumedAt?: number
  /** The client is AI SDK 7: it understands `reset-step` and other chunks that version 6 does not know. */
  ui7?: boolean
  /** Options of an OpenAI request. */
  openai?: OpenAiOptions
}

/** One protocol and its encoder, see {@link Encoder}. */
export interface Wire {
  readonly name: string
  readonly contentType: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent after a period of silence (15 s by default); `''` if the protocol has no suitable frame. */
  readonly keepAlive: string
  createEncoder(options?: EncoderOptions): Encoder
}
