/** The body of a response that pushes its bytes to a sink, without a stream in between. */

export interface BodySink {
  /** The bytes that arrived in one turn of the event loop. Returns false to pause until `resume` is called. */
  bytes(bytes: Uint8Array): boolean
  end(): void
  fail(error: unknown): void
}

/** Every call of the sink is synchronous. Nothing follows `end`, `fail` or `cancel`. */
export interface PushBody {
  /** Delivers the received data at once, then the rest as it arrives. Can be called once. */
  start(sink: BodySink): void
  resume(): void
  cancel(reason: unknown): void
}

/** Bytes buffered for the reader before the connection is paused. */
export const readAhead = 64 * 1024

export function toStream(body: PushBody): ReadableStream<Uint8Array> {
  return new ReadableStream(new PulledBody(body), new ByteLengthQueuingStrategy({ highWaterMark: readAhead }))
}

/** The source of a stream, and the sink of the body that it gets its bytes from. */
class PulledBody implements UnderlyingDefaultSource<Uint8Array>, BodySink {
  readonly #body: PushBody
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined = undefined

  constructor(body: PushBody) {
    this.#body = body
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller
    this.#body.start(this)
  }

  pull(): void {
    this.#body.resume()
  }

  cancel(reason: unknown): void {
    this.#body.cancel(reason)
  }

  bytes(bytes: Uint8Array): boolean {
    this.#controller!.enqueue(bytes)
    return this.#controller!.desiredSize! > 0
  }

  end(): void {
    this.#controller!.close()
  }

  fail(error: unknown): void {
    this.#controller!.error(error)
  }
}

export function fromStream(stream: ReadableStream<Uint8Array>): PushBody {
  return new StreamBody(stream)
}

class StreamBody implements PushBody {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  #paused: PromiseWithResolvers<void> | undefined = undefined
  #isOver = false

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader()
  }

  start(sink: BodySink): void {
    this.#read(sink).catch((error: unknown) => {
      if (!this.#isOver) sink.fail(error)
    })
  }

  async #read(sink: BodySink): Promise<void> {
    for (;;) {
      const { done, value } = await this.#reader.read()
      if (this.#isOver) return
      if (done) return sink.end()
      if (sink.bytes(value)) continue
      this.#paused = Promise.withResolvers()
      await this.#paused.promise
    }
  }

  resume(): void {
    this.#paused?.resolve()
    this.#paused = undefined
  }

  cancel(reason: unknown): void {
    this.#isOver = true
    // Cancelling rejects if the connection is already broken.
    this.#reader.cancel(reason).catch(() => undefined)
  }
}
