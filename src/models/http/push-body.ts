/** The body of a response that hands its bytes to a sink, without a stream in between. */

export interface BodySink {
  /** The bytes that arrived in one turn of the event loop. Returns false to pause until `resume` is called. */
  bytes(bytes: Uint8Array): boolean
  end(): void
  fail(error: unknown): void
}

/** Every call of the sink is synchronous. Nothing follows `end`, `fail` or `cancel`. */
export interface PushBody {
  /** Delivers what has arrived, at once, then the rest as it arrives. Can be called once. */
  start(sink: BodySink): void
  resume(): void
  cancel(reason: unknown): void
}

/** Bytes buffered for the reader before the connection is paused. */
export const readAhead = 64 * 1024

export function toStream(body: PushBody): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        body.start({
          bytes(bytes) {
            controller.enqueue(bytes)
            return controller.desiredSize! > 0
          },
          end: () => controller.close(),
          fail: (error) => controller.error(error),
        })
      },
      pull: body.resume,
      cancel: body.cancel,
    },
    new ByteLengthQueuingStrategy({ highWaterMark: readAhead }),
  )
}

export function fromStream(stream: ReadableStream<Uint8Array>): PushBody {
  const reader = stream.getReader()
  let paused: PromiseWithResolvers<void> | undefined
  let isOver = false

  async function read(sink: BodySink): Promise<void> {
    for (;;) {
      const { done, value } = await reader.read()
      if (isOver) return
      if (done) return sink.end()
      if (sink.bytes(value)) continue
      paused = Promise.withResolvers()
      await paused.promise
    }
  }

  return {
    start(sink) {
      read(sink).catch((error: unknown) => {
        if (!isOver) sink.fail(error)
      })
    },
    resume() {
      paused?.resolve()
      paused = undefined
    },
    cancel(reason) {
      isOver = true
      // Cancelling rejects if the connection is already broken.
      reader.cancel(reason).catch(() => undefined)
    },
  }
}
