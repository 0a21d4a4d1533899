/** Errors as HTTP responses: `{"error": {message, code, type}}`, and `which` for a quota; a status and `Retry-After`. Internals stay in the log. */
import { MillraceError, unexplained, type ErrorValue } from '../part/error.ts'
import { PipelineError } from '../pipeline/fault.ts'

// A Map, because an application may use a code such as `constructor`.
const statuses: ReadonlyMap<string, number> = new Map(
  Object.entries({
    'bad-input': 400,
    'bad-messages': 400,
    'invalid-messages': 400,
    'bad-tools': 400,
    'bad-json': 400,
    'bad-request': 400,
    'bad-query': 400,
    'bad-pipeline': 422,
    'missing-value': 400,
    'mcp-headers-missing': 400,
    unauthorized: 401,
    'two-credentials': 400,
    'access-unavailable': 503,
    'unknown-key': 404,
    'key-exists': 409,
    forbidden: 403,
    'foreign-run': 403,
    'unknown-agent': 404,
    'unknown-run': 404,
    'unknown-test': 404,
    'tests-running': 409,
    'tests-changed': 409,
    'bad-run': 400,
    'bad-fork': 400,
    'run-failed': 400,
    'invalid-recording': 400,
    'bad-entry': 400,
    'run-exists': 409,
    'unknown-thread': 404,
    'unknown-request': 404,
    compacted: 410,
    'unknown-cursor': 404,
    'not-found': 404,
    'method-not-allowed': 405,
    aborted: 409,
    'thread-busy': 409,
    'run-kept': 409,
    'run-ended': 409,
    'message-delivered': 409,
    'message-dropped': 409,
    'unknown-message': 404,
    'too-many-messages': 429,
    'answer-conflict': 409,
    'interrupts-open': 409,
    'idempotency-key-reused': 422,
    'too-large': 413,
    'unsupported-type': 415,
    'rate-limited': 429,
    'quota-exceeded': 429,
    'too-many-runs': 429,
    'too-many-imports': 429,
    'too-many-streams': 429,
    'too-many-tasks': 429,
    'missing-key': 500,
    'unknown-model': 500,
    'model-refused': 502,
    'model-unavailable': 502,
    'model-incomplete': 502,
    'model-failed': 502,
    'bad-output': 502,
    'connection-lost': 502,
    'redirect-refused': 502,
    'line-too-long': 502,
    'body-too-large': 502,
    'answer-too-long': 502,
    'too-many-tool-calls': 502,
    'mcp-unreachable': 502,
    'mcp-lost': 502,
    'mcp-unauthorized': 502,
    'tool-failed': 502,
    'cli-exit': 502,
    'cli-failed': 502,
    'timed-out': 504,
    closing: 503,
    'mcp-closed': 503,
    interrupted: 503,
    'store-failed': 503,
    'store-closed': 503,
    'store-version': 503,
  }),
)

export function statusOf({ code, status }: Pick<ErrorValue, 'code' | 'status'>): number {
  // A provider's 401 or 403 means that this server is misconfigured, not that the client's key is wrong.
  if (code === 'model-refused' && (status === 401 || status === 403)) return 500
  return statuses.get(code) ?? 500
}

/** For the error of a run, convert its `ErrorValue` with `fromErrorValue` first. `says`: further fields of the body, by protocol. */
export function errorResponse(error: Error, says: (code: string) => object = (code) => ({ code })): Response {
  const value = error instanceof MillraceError ? error : new MillraceError('internal', unexplained)
  const { code, message, which } = value
  const status = statusOf(value)
  // The store may work again in a moment, or at another instance.
  const retryAfter = value.retryAfter ?? (/^store-(?:failed|closed)$/u.test(code) ? 1 : undefined)
  const headers: Record<string, string> = { 'cache-control': 'no-store' }
  if (retryAfter !== undefined) headers['retry-after'] = String(Math.ceil(retryAfter))
  if (status === 401) headers['www-authenticate'] = 'Bearer'
  const type = status < 500 ? 'invalid_request_error' : 'server_error'
  const faults = error instanceof PipelineError && { faults: error.faults }
  return Response.json(
    { error: { message, type, ...says(code), ...(which !== undefined && { which }) }, ...faults },
    { status, headers },
  )
}
