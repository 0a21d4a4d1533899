/**
 * A run's answer as pieces for one client. It is a cursor into the log: it reads a batch when the client is ready for more and
 * encodes it into one piece. It buffers nothing else, so a slow client costs one batch.
 */
import type { Entry } from '../part/entry.ts'
import { MillraceError, toPublicError, type ErrorValue } from '../part/error.ts'
import type { Encoder, Piece } from '../wire/wire.ts'
import type { AnswerContext } from './answer-context.ts'
import type { RunReader } from './run-reader.ts'
import type { BodySource } from './streamed-body.ts'

export interface SourceOptions<Out extends Piece> {
  runId: string
  encoder: Encoder<Out>
  /** Sent after a period of silence; empty for nothing. */
  keepAlive: Out
  reader: RunReader
  /** Send entries from this `seq` on. */
  from: number
  /** Selects the entries of each batch to send. Default: all. */
  filter?: ((entries: Entry[]) => Entry[]) | undefined
  /** Ends this client's presence. */
  release?: ((how: { finished: boolean }) => void) | undefined
}

export interface AnswerSource<Out extends Piece> {
  source: BodySource<Out>
  /** Ends it before its end. `finished`: the client gets another response, so this is not a disconnect. */
  drop(finished: boolean): void
}

export function createAnswerSource<Out extends Piece>(
  { runtime, keepAliveMs, onError }: AnswerContext,
  { runId, encoder, keepAlive, reader, from, filter = (entries) => entries, release }: SourceOptions<Out>,
): AnswerSource<Out> {
  let lastWrite = performance.now()
  let timer: ReturnType<typeof setTimeout> | undefined
  let failure: ErrorValue = { code: 'closing', message: 'The server is shutting down.' }
  let isDropped = false

  const unwatch = runtime.onLost(runId, (error) => {
    failure = error
    reader.close()
  })

  function drop(finished: boolean): void {
    if (isDropped) return
    isDropped = true
    unwatch()
    clearTimeout(timer)
    reader.close()
    release?.({ finished })
  }

  function encode(batch: Entry[]): Out {
    for (const entry of batch) {
      if (entry.seq < from) encoder.skip(entry)
      else encoder.write(entry)
    }
    return encoder.take()
  }

  // Callbacks created once instead of async functions: a new pending promise chain per delta is most of the garbage that an
  // idle stream produces.
  let give: (piece: Out | undefined) => void
  let fail: (error: unknown) => void

  function advance(): void {
    // The previous call has delivered what was written before the transfer breaks.
    if (encoder.state === 'broken') fail(new Error('The answer is incomplete.'))
    else if (encoder.state === 'complete') give(undefined)
    else {
      try {
        reader.next().then(onBatch, onReadError)
      } catch (error) {
        onReadError(error)
      }
    }
  }

  function onBatch(batch: Awaited<ReturnType<RunReader['next']>>): void {
    try {
      deliver(pieceOf(batch))
    } catch (error) {
      fail(error)
    }
  }

  function onReadError(error: unknown): void {
    try {
      deliver(failed(error))
    } catch (thrown) {
      fail(thrown)
    }
  }

  function pieceOf({ done, value }: Awaited<ReturnType<RunReader['next']>>): Out | undefined {
    try {
      return done ? undefined : encode(filter(value))
    } catch (error) {
      return failed(error)
    }
  }

  function failed(error: unknown): undefined {
    onError(error)
    const isLost = error instanceof MillraceError && error.code === 'store-lost'
    failure = isLost ? toPublicError(error) : { code: 'store-failed', message: 'The run can no longer be read.' }
  }

  /** Delivers a piece for the next write; undefined at the end of the log. */
  function deliver(given: Out | undefined): void {
    if (isDropped) return give(undefined)
    const piece = given ?? encoder.fail(failure)
    if (encoder.state !== 'open') drop(true)
    lastWrite = performance.now()
    if (piece.length === 0) advance()
    else give(piece)
  }

  // Checks the time of the last write when it fires, instead of resetting the timer with every write.
  function watch(ms: number): void {
    timer = setTimeout(() => {
      const rest = lastWrite + keepAliveMs - performance.now()
      if (rest > 0) return watch(rest)
      lastWrite = performance.now()
      source.sendKeepAlive?.(keepAlive)
      watch(keepAliveMs)
    }, ms)
    timer.unref?.()
  }

  if (keepAlive.length > 0) watch(keepAliveMs)
  const source: BodySource<Out> = {
    next(given, failing) {
      give = given
      fail = failing
      advance()
    },
    cancel: () => drop(false),
  }
  return { source, drop }
}
