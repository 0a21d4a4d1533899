/** Applies size limits to response bodies. */
import { createByteMeter, type ByteMeter, type MeterOptions } from './byte-meter.ts'
import { errorBodyBytes } from './read-limits.ts'

/** Reading the body of the returned response fails when a limit is exceeded. The body of an error response is truncated instead. */
export function boundResponse(response: Response, options: MeterOptions, onPassed?: (error: Error) => void): Response {
  const { body, status, statusText, headers } = response
  if (body === null) return response
  const bounded = response.ok
    ? boundBody(body, createByteMeter(options), onPassed, response)
    : firstBytes(body, errorBodyBytes)
  return new Response(bounded, { status, statusText, headers })
}

export function boundBody(
  body: ReadableStream<Uint8Array>,
  meter: ByteMeter,
  onPassed?: (error: Error) => void,
  response?: Response,
): ReadableStream<Uint8Array> {
  // In Deno the signal of a `fetch` reaches the body only while the response is reachable: findings/deno-abort-needs-the-response.sh.
  const from = { reader: body.getReader(), response }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await from.reader.read()
        if (done) return controller.close()
        try {
          meter(value)
        } catch (error) {
          controller.error(error)
          cancelQuietly(from.reader, error)
          onPassed?.(error as Error)
          return
        }
        controller.enqueue(value)
      },
      cancel: (reason) => from.reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

export function firstBytes(body: ReadableStream<Uint8Array>, most: number): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  let left = most
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read()
        if (!done) controller.enqueue(value.length > left ? value.subarray(0, left) : value)
        left -= value?.length ?? 0
        if (!done && left > 0) return
        controller.close()
        if (!done) cancelQuietly(reader, 'the rest is not needed')
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

function cancelQuietly(reader: ReadableStreamDefaultReader<Uint8Array>, reason: unknown): void {
  // Cancelling rejects if the connection is already broken.
  reader.cancel(reason).catch(() => undefined)
}
