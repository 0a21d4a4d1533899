/**
 * A body that comes piece by piece. Whoever has the `Response` reads a stream of the Web; our own listener asks for the
 * source behind it and writes its text to the socket, because such a stream in between costs CPU for every piece and
 * some KB for as long as it is open.
 */
export interface BodySource<Piece = string> {
  /** The next piece; undefined when the body is whole. Rejects when it must break off. One call at a time. */
  next(): Promise<Piece | undefined>
  /** Nobody takes any more. */
  leave(): void
  /** Set by who sends it: what is to be written while no piece comes, unless the client has not taken the last one. */
  say?: (text: string) => void
}

const sources = new WeakMap<ReadableStream, BodySource>()

/** A stream that asks the source when it is asked itself. */
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

/** What a body comes from, when it is one of ours that nobody reads yet. From then on it is not to be read as a stream. */
export function sourceOf(body: ReadableStream<Uint8Array>): BodySource | undefined {
  return body.locked ? undefined : sources.get(body)
}
