/**
 * A wire turns a run's entries into one protocol's bytes.
 *
 * An encoder is a pure, deterministic state machine over the entries of one run, from its first entry on: fed the same
 * entries it gives the same text, whenever and in whatever batches. To resume after entry k it is fed 1…k with `skip`
 * and the rest with `encode`; so `prefix(k) + resume(k) = whole` for every k, by construction. A client that has seen
 * nothing of a run is fed its stored entries through `part/superseded.ts`, so that it never meets a retracted attempt.
 */
import type { Entry } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import type { OpenAiOptions } from './openai-output.ts'

/** One client’s view of one run, advanced entry by entry. */
export interface Encoder {
  /** What to send for this entry; `''` for nothing. After the terminal frame everything gives `''`. */
  encode(entry: Entry): string
  /** Advances over an entry that the client has already got, building no text. */
  skip(entry: Entry): void
  /** The terminal frame for a failure that the log does not hold (the store broke, a cursor is refused). */
  fail(error: ErrorValue): string
  /**
   * `open` until the terminal frame; then `complete`, or `broken` when the protocol has no frame for a failure and the
   * server must break the transfer so that the client sees it is incomplete.
   */
  readonly state: 'open' | 'complete' | 'broken'
}

/** What a client can take, and where it stands. */
export interface EncoderOptions {
  /**
   * `suspend` entries with a smaller `seq` than this do not end the stream, because the run was resumed since: the
   * `seq` of the last `resume` known when the reader connects. Default 0: the first `suspend` ends it.
   */
  resumedAt?: number
  /** The client reads AI SDK 7 chunks: it may be sent `reset-step` and other chunks that 6 does not know. */
  ui7?: boolean
  /** How an OpenAI client asked. */
  openai?: OpenAiOptions
}

/** One protocol: how a run’s entries are said in it. See {@link Encoder}. */
export interface Wire {
  readonly name: string
  readonly contentType: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent after 15 s of silence; `''` when the protocol has nothing harmless to send. */
  readonly keepAlive: string
  createEncoder(options?: EncoderOptions): Encoder
}
