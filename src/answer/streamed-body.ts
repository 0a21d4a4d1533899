/**
 * The source of a streamed body. Other servers read it as a `ReadableStream`. Our own listener reads the source itself and
 * writes its text to the socket, because the stream would cost CPU for every chunk and some KB while it is open.
 */
export interface BodySource<Piece = string> {
  /** The next chunk; undefined at the end. Rejects if the body must be aborted. One call at a time. */
  next(): Promise<Piece | undefined>
  /** Cancels the body. */
  leave(): void
  /** Set by the sender: writes a keep-alive between chunks, unless the client has not read the last one. */
  say?: (text: string) => void
}

const sources = new WeakMap<ReadableStream, BodySource>()

/** A stream that pulls from the source on demand. */
export function toBody(source: BodySource): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder()
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        source.say = (text) => {
          if ((controller.desiredSize ?? -1) >= 0) controller.enqueue(bytes.encode(text))
        }
      },
      async pull(controller) {
        const piece = await source.next()
        if (piece === undefined) controller.close()
        else controller.enqueue(bytes.encode(piece))
      },
      cancel: source.leave,
    },
    { highWaterMark: 0 },
  )
  sources.set(body, source)
  return body
}

/** The source of a body that `toBody` made and that is not locked. Read it instead of the stream, not in addition. */
export function sourceOf(body: ReadableStream<Uint8Array>): BodySource | undefined {
  return body.locked ? undefined : sources.get(body)
}
