/** Attaches a client to a run and opens its cursor: presence, replay, and the encoder. */
import type { Log } from '../part/log.ts'
import { messagesOf, type Message } from '../part/message.ts'
import type { DisconnectPolicy } from '../pipeline/pipeline.ts'
import type { Turned } from '../runtime/continue.ts'
import { conversation, historyLimit } from '../runtime/conversation.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Piece, Wire, WireContext, Encoder, LastBatch } from '../wire/wire.ts'
import { createRunReader, type RunReader, readReplayState, type ReplayState } from './run-reader.ts'
import { nextPiece, type BodySource } from './streamed-body.ts'
import type { Entry } from '../part/entry.ts'
import { MillraceError, toPublicError, type ErrorValue } from '../part/error.ts'
import { isBoundToRequest } from '../async/bound-to-request.ts'

export interface OpenOptions<Options extends object, Out extends Piece> {
  runId: string
  wire: Wire<Options, Out>
  /** Options of the protocol. */
  options?: Partial<Options>
  /** How the client came to the run. A client that joins reads it from its start, without superseded attempts. Default `started`. */
  how?: Turned['how']
  /** First `seq` of this client's part of the answer: it gets no entry before it. Default 0. */
  from?: number
  /** The replay state, if the caller has read it already. */
  replayState?: ReplayState
  /** The disconnect policy for this client. Default: none. */
  policy?: DisconnectPolicy
}

/** A delivery that was not read yet: read its source, or drop it. */
export type OpenAnswer<Out extends Piece> = DeliverySource<Out>

export async function openDelivery<Options extends object, Out extends Piece>(
  context: DeliveryContext,
  { runId, wire, options, how = 'started', from = 0, policy, ...rest }: OpenOptions<Options, Out>,
): Promise<OpenAnswer<Out>> {
  const { runtime } = context
  const { log } = runtime.store
  const release = policy === undefined ? undefined : runtime.attach(runId, policy)
  try {
    const replayState = rest.replayState ?? (how === 'joined' ? await readReplayState(log, runId) : undefined)
    const at: WireContext = { resumedAt: how === 'steered' ? from : (replayState?.resumedAt ?? from) }
    if (how === 'joined' && from > 0) at.joinedAt = from
    if (runtime.roles !== undefined) at.roles = runtime.roles
    if (wire.showsHistory === true) at.history = await readHistory(runtime, runId)
    const encoder = wire.createEncoder(at, options)
    const reader = createRunReader(log, runId, wire.isStateless === true ? Math.max(0, from - 1) : 0, from)
    const { lastBatch } = wire
    const keepAlive = keepAliveOf(wire)
    const filter = replayState?.filter
    const shared = filter === undefined && lastBatch ? { lastBatch, options: JSON.stringify(options ?? {}) } : undefined
    return createAnswerSource(context, { runId, encoder, keepAlive, reader, from, filter, shared, release })
  } catch (error) {
    release?.()
    throw error
  }
}

/** The conversation before a run whose thread's history is the server's. Otherwise its `run-start` has it. */
export async function readHistory({ store }: Runtime, runId: string): Promise<Message[]> {
  const [start] = await firstEntries(store.log, runId)
  if (start?.type !== 'run-start' || start.previousRunId === undefined) return []
  const asked = { following: messagesOf(start.input), limit: historyLimit }
  return (await conversation(store, start.threadId, start.previousRunId, asked)).messages
}

async function firstEntries(log: Log, runId: string) {
  for await (const batch of log.read(runId, { limit: 1 })) return batch
  return []
}

/** Reads a delivery to its end. Undefined if the client disconnected before. */
export async function collectAnswer<Out extends Piece>(
  { source }: OpenAnswer<Out>,
  signal: AbortSignal,
): Promise<Out[] | undefined> {
  const pieces: Out[] = []
  const cancel = () => source.cancel()
  signal.addEventListener('abort', cancel, { once: true })
  try {
    if (signal.aborted) cancel()
    for (;;) {
      const piece = await nextPiece(source)
      if (signal.aborted) return undefined
      if (piece === undefined) return pieces
      pieces.push(piece)
    }
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/**
 * A run's delivery as pieces for one client. It is a cursor into the log: it reads a batch when the client is ready for more and encodes it into
 * one piece. It buffers nothing else, so a slow client costs one batch.
 */
type ReadBatch = Awaited<ReturnType<RunReader['next']>>

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
  /** Shared between readers of a run if the wire is stateless, with a key of this client's options. Then nothing before `from` is read. */
  shared?: { lastBatch: LastBatch<Out>; options: string } | undefined
  /** Ends this client's presence. */
  release?: ((how: { finished: boolean }) => void) | undefined
}

interface DeliverySource<Out extends Piece> {
  /** Peeking with it does not consume entries. */
  readonly reader: RunReader
  readonly source: BodySource<Out>
  /** Ends it early. `finished`: the client gets another response, so this is not a disconnect. */
  drop(finished: boolean): void
}

export function createAnswerSource<Out extends Piece>(
  context: DeliveryContext,
  options: SourceOptions<Out>,
): DeliverySource<Out> {
  return new LogDelivery(context, options)
}

function ignore(): void {}

/** Implements its own source. A class with `private` fields, not closures: one for each open stream (decisions/0028). */
class LogDelivery<Out extends Piece> implements DeliverySource<Out>, BodySource<Out> {
  readonly reader: RunReader
  readonly source: BodySource<Out> = this
  sendKeepAlive: ((piece: Out) => void) | undefined = undefined
  private readonly context: DeliveryContext
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

  constructor(context: DeliveryContext, options: SourceOptions<Out>) {
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
    // The previous call has delivered the written data before the transfer breaks.
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
  private readonly onBatch = (batch: ReadBatch): void => {
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

  /** Not every sender cancels after a failure. */
  private breakOff(error: unknown): void {
    this.drop(false)
    this.fail(error)
  }

  private pieceOf({ done, value }: ReadBatch): Out | undefined {
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
    // Entries that the protocol does not show are silence for the client: those of a called agent may come for minutes.
    if (piece.length === 0) return this.advance()
    this.lastWrite = performance.now()
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

/** The context of a delivery, for any transport. */
export interface DeliveryContext {
  runtime: Runtime
  /** ms of silence after which a keep-alive is sent. */
  keepAliveMs: number
  /** Called with errors of the server itself, such as a failing store. */
  onError: (error: unknown) => void
}

/* Keep-alives: the maximum silence of a stream, and the pieces that end it. */

/**
 * ms of silence after which a keep-alive is sent by default. Bun's server ends a response after 10 seconds of silence. On a platform that ends a
 * request's work with it, only a write shows that the client has left: the model would continue meanwhile.
 */
export function defaultKeepAliveMs(): number {
  return isBoundToRequest() ? 2000 : 8000
}

/** The keep-alive before the first write, and later ones. Empty for nothing. */
interface KeepAlive<Out> {
  first: Out
  later: Out
}

/**
 * Plain text has no frame without text. Where only a write shows that the client has left, it sends invisible text: a space before the answer,
 * because the answer may be JSON, and a zero-width one inside it.
 */
export function keepAliveOf<Out extends Piece>({ keepAlive, isRaw }: Wire<never, Out>): KeepAlive<Out> {
  const isText = isRaw === true && typeof keepAlive === 'string' && keepAlive === ''
  if (!isText || !isBoundToRequest()) return { first: keepAlive, later: keepAlive }
  return { first: ' ', later: '\u200B' } as unknown as KeepAlive<Out>
}
