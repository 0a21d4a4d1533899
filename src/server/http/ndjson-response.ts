/** A body of JSON lines about a run that is made while it is read. */
import { runIdHeader } from '../../answer/run-id-header.ts'

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
