/** An open answer as an HTTP response. */
import type { Wire } from '../wire/wire.ts'
import { lightResponse } from './light-response.ts'
import type { OpenAnswer } from './open-answer.ts'

type Bytes = string | Uint8Array

export function answerResponse<Options extends object, Out extends Bytes>(
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

/** The id of a run as the value of `x-millrace-run-id`. That of an imported run may be any text, and a header holds printable ASCII: what it cannot hold is percent-encoded. */
export function runIdHeader(id: string): string {
  return /^[!-$&-~]+$/u.test(id) ? id : encodeURIComponent(id.toWellFormed())
}
