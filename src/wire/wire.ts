/**
 * A wire turns a run's entries into the output of one protocol. It has two halves:
 *
 * - a {@link Projection}: entries → the protocol's typed events. A deterministic state machine over the entries of one run, starting with the
 *   first: the same entries always produce the same events, however they are batched.
 * - a {@link Framing}: events → the output on the transport: SSE text, NDJSON lines, plain text, objects, bytes.
 *
 * To resume after entry k, pass entries 1…k to `skip` and the rest to `encode`; so `prefix(k) + resume(k) = whole` for every k. For a client that
 * reads a run from the start later, filter the entries with `fold/superseded.ts`, so that it never sees a retracted attempt.
 */
import type { Entry } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import type { Message } from '../part/message.ts'
import type { Role } from '../part/principal.ts'

/** `complete`: the terminal event was sent. `broken`: the protocol has no event for a failure, so the transfer must be aborted. */
export type WireState = 'open' | 'complete' | 'broken'

/** The state of the run and its thread when the reader connects. Common to all protocols. */
export interface WireContext {
  /**
   * The `seq` of the last `resume` when the reader connects. `suspend` entries before it do not end the stream. Default 0: the
   * first `suspend` ends it.
   */
  resumedAt?: number
  /**
   * The `seq` of the first sent entry, for a client that joins a run that is not suspended. Items that are open there were never started for it.
   */
  joinedAt?: number
  /** The conversation before this run, if the wire has `showsHistory`. */
  history?: readonly Message[]
  /** The reader's roles. Approvals that need another one are not offered: the reader only learns that the run waits. Absent: all are offered. */
  roles?: readonly Role[]
}

/** Where a projection sends its events, in order. */
export interface Sink<Event> {
  /** Events are dropped, because the client has them. Check it before you build a large event. */
  readonly muted: boolean
  send(event: Event): void
  /**
   * Returns a sender for events that differ only in one text, and optionally in one number (a time), such as the deltas of a block. A text framing
   * prepares the constant part, so that a delta costs a concatenation and no object. `make` must place its text in the event once, unchanged; and
   * its number once, or not at all.
   */
  prepare(make: (text: string, number: number) => Event): (text: string, number?: number) => void
  /** The protocol's stream ends here. A framing may have a frame for it (`[DONE]`). */
  end(): void
}

/** The state machine of a protocol. After the terminal event it sends nothing. */
export interface Projection {
  apply(entry: Entry): void
  /** Ends with a failure that is not in the log (the store failed, a cursor is refused). Called only while it is open. */
  fail(error: ErrorValue): void
  readonly state: WireState
}

/** Creates the state machine of one run for one client. */
export type CreateProjection<Event, Options extends object> = (
  sink: Sink<Event>,
  context: WireContext,
  options: Partial<Options>,
) => Projection

/** An encoder's output: a text, bytes, or a list of objects. Empty if there is nothing to send. */
export interface Piece {
  readonly length: number
}

/** A sink that frames events and collects them until they are taken. */
export interface Frames<Event, Out extends Piece = string> extends Sink<Event> {
  mute(isMuted: boolean): void
  /** The frames since the last call. */
  take(): Out
}

/** The format of events on one transport. */
export interface Framing<Event, Out extends Piece = string> {
  readonly contentType: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent after a period of silence (8 s by default); empty if there is no suitable frame. */
  readonly keepAlive: Out
  open(): Frames<Event, Out>
}

/** Encodes one run for one client, entry by entry. */
export interface Encoder<Out extends Piece = string> {
  /** The output for this entry; empty for nothing. Always empty after the terminal event. */
  encode(entry: Entry): Out
  /** Like `encode`, but collects: `take` returns everything written since the last call. */
  write(entry: Entry): void
  take(): Out
  /** Advances over an entry that the client already has, without output. */
  skip(entry: Entry): void
  /** The terminal event for a failure that is not in the log. */
  fail(error: ErrorValue): Out
  readonly state: WireState
}

/** Differences between wires in the delivery. */
export interface WireTraits {
  /** It has no frames, so a `Response` that a step returns is sent as it is. */
  isRaw?: true
  /** It has an event for a stopped run, which is therefore not an HTTP error. */
  showsAbort?: true
  /** It shows the log itself, prompts included: only for clients that may read logs. */
  showsLog?: true
  /** It shows the conversation before the run: `WireContext.history` is read for it. */
  showsHistory?: true
  /**
   * Its output for an entry depends only on that entry and on the options, and only `run-end` and `fail` change its state. So a reader can begin at
   * any entry, and readers of one run at the same entry share the encoded output.
   */
  isStateless?: true
}

/** One protocol in one framing, see {@link Encoder}. `Options` are those of the protocol. */
export interface Wire<Options extends object = object, Out extends Piece = string> extends WireTraits {
  readonly name: string
  readonly contentType: string
  readonly headers?: Readonly<Record<string, string>>
  readonly keepAlive: Out
  /** Only with `isStateless`. */
  readonly lastBatch?: LastBatch<Out>
  createEncoder(context?: WireContext, options?: Partial<Options>): Encoder<Out>
}

/** The two halves of a wire, its name, and its traits. */
export interface WireParts<Event, Options extends object, Out extends Piece> extends WireTraits {
  /** The name that users write (`--format`). */
  name: string
  project: CreateProjection<Event, Options>
  framing: Framing<Event, Out>
}

/** A wire from its two halves. */
export function createWire<Event, Options extends object = object, Out extends Piece = string>(
  parts: WireParts<Event, Options, Out>,
): Wire<Options, Out> {
  const { name, project, framing, ...traits } = parts
  const { contentType, headers = {}, keepAlive } = framing
  return {
    ...traits,
    name,
    contentType,
    headers,
    keepAlive,
    ...(traits.isStateless && { lastBatch: createLastBatch<Out>() }),
    createEncoder(context = {}, options = {}) {
      const frames = framing.open()
      return createEncoder(frames, project(frames, context, options))
    },
  }
}

function createEncoder<Event, Out extends Piece>(frames: Frames<Event, Out>, projection: Projection): Encoder<Out> {
  const write = (entry: Entry) => {
    projection.apply(entry)
    encoder.state = projection.state
  }
  // `state` is a plain field: an object with its own getter takes four times the memory.
  const encoder = {
    state: projection.state,
    write,
    take: frames.take,
    encode(entry: Entry) {
      write(entry)
      return frames.take()
    },
    skip(entry: Entry) {
      frames.mute(true)
      write(entry)
      frames.mute(false)
    },
    fail(error: ErrorValue) {
      if (projection.state === 'open') projection.fail(error)
      encoder.state = projection.state
      return frames.take()
    },
  }
  return encoder
}

/*
 * Output shared between readers of one run. Those that keep up get the same entries in the same tick; with a stateless wire they also need the same
 * piece, so the first of them makes it for all.
 */

/** The last encoded batch of a wire, and its piece for each set of options. Older ones are not kept, even for lagging readers. */
export interface LastBatch<Out extends Piece> {
  /**
   * The piece for these consecutive entries of one log. `options`: a key of the protocol's options. Do not change the piece: other readers send it,
   * too.
   */
  encode(batch: readonly Entry[], options: string, encoder: Encoder<Out>): Out
}

export function createLastBatch<Out extends Piece>(): LastBatch<Out> {
  let first: Entry | undefined
  let last: Entry | undefined
  let pieces = new Map<string, Out>()

  function encodeAlone(batch: readonly Entry[], encoder: Encoder<Out>): Out {
    for (const entry of batch) encoder.write(entry)
    return encoder.take()
  }

  return {
    encode(batch, options, encoder) {
      const end = batch.at(-1)
      // Only the end of the run changes an encoder's state.
      if (end === undefined || end.type === 'run-end') return encodeAlone(batch, encoder)
      if (batch[0] !== first || end !== last) {
        first = batch[0]
        last = end
        pieces = new Map()
      }
      let piece = pieces.get(options)
      if (piece === undefined) {
        piece = encodeAlone(batch, encoder)
        pieces.set(options, piece)
      }
      return piece
    },
  }
}

/* An error as one text, for error frames without further fields, sent after status and headers. */

/** The message, with the seconds to wait if the error has `retryAfter`. */
export function errorText({ message, retryAfter }: Pick<ErrorValue, 'message' | 'retryAfter'>): string {
  if (retryAfter === undefined) return message
  const seconds = Math.ceil(retryAfter)
  const sentence = /[.!?]$/u.test(message) ? message : `${message}.`
  return `${sentence} Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`
}

/** For wires that cannot retract sent output of an attempt that a crash superseded. */
export const begunAgain = 'The server was interrupted and had to begin this answer again. Load the conversation again.'
