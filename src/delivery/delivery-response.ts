/** An open delivery as an HTTP response. */
import type { Wire } from '../wire/wire.ts'
import { lightResponse } from './light-response.ts'
import type { OpenAnswer } from './open-delivery.ts'

type Bytes = string | Uint8Array

export function deliveryResponse<Options extends object, Out extends Bytes>(
  { contentType, headers }: Pick<Wire<Options, Out>, 'contentType' | 'headers'>,
  runId: string,
  { source }: Pick<OpenAnswer<Out>, 'source'>,
): Response {
  return lightResponse(
    {
      'content-type': contentType,
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'x-millrace-run-id': runIdHeader(runId),
      ...headers,
    },
    source,
  )
}

export function withRunId(response: Response, runId: string): Response {
  response.headers.set('x-millrace-run-id', runIdHeader(runId))
  return response
}

/**
 * The id of a run as the value of `x-millrace-run-id`. An imported run's id may be any text, but a header holds printable ASCII: other characters
 * are percent-encoded.
 */
export function runIdHeader(id: string): string {
  return /^[!-$&-~]+$/u.test(id) ? id : encodeURIComponent(id.toWellFormed())
}
