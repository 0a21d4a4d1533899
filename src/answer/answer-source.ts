/**
 * A run's answer as pieces for one client. It is a cursor into the log: it reads a batch when the client is ready for more and
 * encodes it into one piece. It buffers nothing else, so a slow client costs one batch.
 */
import type { Entry } from '../part/entry.ts'
import { MillraceError, toPublicError, type ErrorValue } from '../part/error.ts'
import type { LastBatch } from '../wire/last-batch.ts'
import type { Encoder, Piece } from '../wire/wire.ts'
import type { AnswerContext } from './answer-context.ts'
import type { KeepAlive } from './keep-alive.ts'
import type { RunReader } from './run-reader.ts'
import type { BodySource } from './streamed-body.ts'

type Batch = Awaited<ReturnType<RunReader['next']>>

const closing: ErrorValue = { code: 'closing', message: 'The server is shutting down.' }
const unreadable: ErrorValue = { code: 'store-failed', message: 'The run can no longer be read.' }

export interface SourceOptions<Out extends Piece> {
  runId: string
  encoder: Encoder<Out>
  /** Sent after a period of silence. */
  keepAlive: KeepAlive<Out>
  reader: RunReader
  /** Send entries from this `seq` on. */
  from: number
  /** Selects the entries of each batch to send. Default: all. */
  filter?: ((entries: Entry[]) => Entry[]) | undefined
  /** What readers of a run share if the wire is stateless, and a name of this client's options. Nothing before `from` is read then. */
  shared?: { lastBatch: LastBatch<Out>; options: string } | undefined
  /** Ends this client's presence. */
  release?: ((how: { finished: boolean }) => void) | undefined
}

export interface AnswerSource<Out extends Piece> {
  /** Peeking with it does not consume entries. */
  readonly reader: RunReader
  readonly source: BodySource<Out>
  /** Ends it before its end. `finished`: the client gets another response, so this is not a disconnect. */
  drop(finished: boolean): void
}

export function createAnswerSource<Out extends Piece>(
  context: AnswerContext,
  options: SourceOptions<Out>,
): AnswerSource<Out> {
  return new Answer(context, options)
}

function ignore(): void {}

/**
 * It is its own source. A class, because its functions would cost each open stream more than what it knows. `private` and not `#`: see
 * decisions/0028.
 */
class Answer<Out extends Piece> implements AnswerSource<Out>, BodySource<Out> {
  readonly reader: RunReader
  readonly source: BodySource<Out> = this
  sendKeepAlive: ((piece: Out) => void) | undefined = undefined
  private readonly context: AnswerContext
  private readonly options: SourceOptions<Out>
  private readonly unwatch: () => void
  private lastWrite = performance.now()
  private timer: ReturnType<typeof setTimeout> | undefined = undefined
  private failure: ErrorValue = closing
  private isDropped = false
  private hasWritten = false
  private ended: () => void = ignore
  private give: (piece: Out | undefined) => void = ignore
  private fail: (error: unknown) => void = ignore

  constructor(context: AnswerContext, options: SourceOptions<Out>) {
    this.reader = options.reader
    this.context = context
    this.options = options
    this.unwatch = context.runtime.onLost(options.runId, (error) => {
      this.failure = error
      this.reader.close()
    })
    if (options.keepAlive.first.length > 0) this.watch(context.keepAliveMs)
  }

  next(give: (piece: Out | undefined) => void, fail: (error: unknown) => void): void {
    this.give = give
    this.fail = fail
    this.advance()
  }

  cancel(): void {
    this.drop(false)
  }

  onEnd(then: () => void): void {
    if (this.isDropped) then()
    else this.ended = then
  }

  drop(finished: boolean): void {
    if (this.isDropped) return
    this.isDropped = true
    this.unwatch()
    clearTimeout(this.timer)
    this.reader.close()
    this.options.release?.({ finished })
    this.ended()
    this.ended = ignore
  }

  private encode(batch: Entry[]): Out {
    const { encoder, from, shared } = this.options
    if (shared !== undefined) return shared.lastBatch.encode(batch, shared.options, encoder)
    for (const entry of batch) {
      if (entry.seq < from) encoder.skip(entry)
      else encoder.write(entry)
    }
    return encoder.take()
  }

  private advance(): void {
    const { state } = this.options.encoder
    // The previous call has delivered what was written before the transfer breaks.
    if (state === 'broken') this.fail(new Error('The answer is incomplete.'))
    else if (state === 'complete') this.give(undefined)
    else {
      try {
        this.reader.take(this.onBatch, this.onReadError)
      } catch (error) {
        this.onReadError(error)
      }
    }
  }

  // Callbacks created once instead of async functions: a new pending promise chain per delta is most of the garbage that an
  // idle stream produces.
  private readonly onBatch = (batch: Batch): void => {
    try {
      this.deliver(this.pieceOf(batch))
    } catch (error) {
      this.breakOff(error)
    }
  }

  private readonly onReadError = (error: unknown): void => {
    try {
      this.deliver(this.failed(error))
    } catch (thrown) {
      this.breakOff(thrown)
    }
  }

  /** Not every sender leaves what has failed. */
  private breakOff(error: unknown): void {
    this.drop(false)
    this.fail(error)
  }

  private pieceOf({ done, value }: Batch): Out | undefined {
    try {
      const { filter } = this.options
      return done ? undefined : this.encode(filter === undefined ? value : filter(value))
    } catch (error) {
      return this.failed(error)
    }
  }

  private failed(error: unknown): undefined {
    const { onError } = this.context
    onError(error)
    const isLost = error instanceof MillraceError && error.code === 'store-lost'
    this.failure = isLost ? toPublicError(error) : unreadable
  }

  /** Delivers a piece for the next write; undefined at the end of the log. */
  private deliver(given: Out | undefined): void {
    if (this.isDropped) return this.give(undefined)
    const { encoder } = this.options
    const piece = given ?? encoder.fail(this.failure)
    if (encoder.state !== 'open') this.drop(true)
    this.lastWrite = performance.now()
    if (piece.length === 0) return this.advance()
    this.hasWritten = true
    this.give(piece)
  }

  // Checks the time of the last write when it fires, instead of resetting the timer with every write.
  private watch(ms: number): void {
    this.timer = setTimeout(() => {
      const { keepAliveMs } = this.context
      const rest = this.lastWrite + keepAliveMs - performance.now()
      if (rest > 0) return this.watch(rest)
      this.lastWrite = performance.now()
      this.sendKeepAlive?.(this.hasWritten ? this.options.keepAlive.later : this.options.keepAlive.first)
      this.watch(keepAliveMs)
    }, ms)
    this.timer.unref?.()
  }
}
