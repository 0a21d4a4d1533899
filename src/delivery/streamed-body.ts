/**
 * The source of a streamed body. Other servers read it as a `ReadableStream`. Our own listener reads the source itself and writes its text to the
 * socket, because the stream would cost CPU for every chunk and some KB while it is open.
 */
export interface BodySource<Piece = string> {
  /**
   * Calls back with the next chunk, undefined at the end; or fails, if the body must be aborted. One call at a time. Callbacks, because promises
   * would be a good part of a delta's garbage.
   */
  next(give: (piece: Piece | undefined) => void, fail: (error: unknown) => void): void
  /** The client disconnects. */
  cancel(): void
  /** Calls back once it has ended or was cancelled. Without it, see {@link onSourceEnd}. */
  onEnd?(then: () => void): void
  /** Set by the sender: writes a keep-alive between chunks, unless the client has not read the last one. */
  sendKeepAlive?(piece: Piece): void
}

type Bytes = string | Uint8Array

/** The `next` of a source that uses promises. */
export function fromPromises<Piece>(next: () => Promise<Piece | undefined>): BodySource<Piece>['next'] {
  return (give, fail) => void next().then(give, fail)
}

export function nextPiece<Piece>(source: BodySource<Piece>): Promise<Piece | undefined> {
  return new Promise((resolve, reject) => source.next(resolve, reject))
}

const bodySource = Symbol('source')

/** A property, because an old `WeakMap` keeps its young values alive until the old generation is collected. */
type Sourced = ReadableStream<Uint8Array> & { [bodySource]?: BodySource<Bytes> }

/** A stream that pulls from the source on demand. */
export function toBody<Piece extends Bytes>(source: BodySource<Piece>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const toBytes = (piece: Bytes) => (typeof piece === 'string' ? encoder.encode(piece) : piece)
  const body: Sourced = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        source.sendKeepAlive = (piece) => {
          if ((controller.desiredSize ?? -1) >= 0) controller.enqueue(toBytes(piece))
        }
      },
      async pull(controller) {
        const piece = await nextPiece(source)
        if (piece === undefined) controller.close()
        else controller.enqueue(toBytes(piece))
      },
      cancel: () => source.cancel(),
    },
    { highWaterMark: 0 },
  )
  body[bodySource] = source
  return body
}

/** Calls `then` once, when a source was read, failed, or was cancelled. */
export function onSourceEnd(source: BodySource<Bytes>, then: () => void): void {
  // Not wrapped: a wrapper kept a run's delivery alive until the old generation was collected: see decisions/0028.
  if (source.onEnd !== undefined) return source.onEnd(then)
  const { next, cancel } = source
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  void ended.then(then)
  let asked: Parameters<typeof next>
  const give = (piece: Bytes | undefined) => {
    if (piece === undefined) end()
    asked[0](piece)
  }
  const fail = (error: unknown) => {
    end()
    asked[1](error)
  }
  source.next = (...given) => {
    asked = given
    next.call(source, give, fail)
  }
  source.cancel = () => {
    end()
    cancel.call(source)
  }
}

/** The source of a body that `toBody` made and that is not locked. Read it instead of the stream, not in addition. */
export function sourceOf(body: Sourced): BodySource<Bytes> | undefined {
  return body.locked ? undefined : body[bodySource]
}
