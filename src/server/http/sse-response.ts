/** A stream of server-sent events for monitors, not the delivery of a run. */
import { toBody, type BodySource } from '../../delivery/streamed-body.ts'
import { runIdHeader } from '../../delivery/delivery-response.ts'

export function sseResponse(source: BodySource): Response {
  const headers = {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  }
  return new Response(toBody(source), { headers })
}

/** Calls `tell` after each period of `ms` without a write, until it is stopped. */
export function watchSilence(ms: number, tell: () => void): { wrote(): void; stop(): void } {
  let lastWrite = performance.now()
  let timer: ReturnType<typeof setTimeout> | undefined

  function watch(): void {
    timer = setTimeout(() => {
      if (performance.now() - lastWrite >= ms / 2) tell()
      watch()
    }, ms)
    timer.unref?.()
  }

  watch()
  return {
    wrote: () => void (lastWrite = performance.now()),
    stop: () => clearTimeout(timer),
  }
}

/** A lazy body of JSON lines about a run. */
export function ndjsonResponse(run: string, batches: AsyncIterable<readonly unknown[]>): Response {
  const each = batches[Symbol.asyncIterator]()
  const bytes = new TextEncoder()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          const { done, value } = await each.next()
          if (done) return controller.close()
          if (value.length === 0) continue
          const lines = value.map((item) => `${JSON.stringify(item)}\n`)
          return controller.enqueue(bytes.encode(lines.join('')))
        }
      },
      async cancel() {
        await each.return?.()
      },
    },
    { highWaterMark: 0 },
  )
  const headers = {
    'content-type': 'application/x-ndjson',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
    'x-millrace-run-id': runIdHeader(run),
  }
  return new Response(body, { headers })
}
