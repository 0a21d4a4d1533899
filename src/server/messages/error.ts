/** Errors in Anthropic's format: `{"type": "error", "error": {type, message}}`, with the header `request-id`. */
import { errorResponse } from '../../delivery/http-error.ts'
import { MillraceError, unexplained } from '../../part/error.ts'

/** Requests of Anthropic's clients: they all say a version, and only `/v1/models` is OpenAI's as well. */
export function isMessagesRequest(path: string, headers: Headers): boolean {
  if (/^\/v1\/messages(?:\/|$)/u.test(path)) return true
  return /^(?:\/api)?\/v1\/models(?:\/|$)/u.test(path) && headers.has('anthropic-version')
}

export function messagesError(error: Error): Response {
  const value = error instanceof MillraceError ? error : new MillraceError('internal', unexplained)
  const { headers, status: usual } = errorResponse(error)
  const status = statusFor(value, usual)
  if (value.code === 'thread-busy' && !headers.has('retry-after')) headers.set('retry-after', '1')
  // A run that has failed is not run again: https://github.com/anthropics/anthropic-sdk-typescript reads this header, and so does Claude Code.
  if (value.code === 'run-failed') headers.set('x-should-retry', 'false')
  return inForm(status, { type: typeFor(status), message: value.message }, headers)
}

/** The failure of a run that is not streamed. `type`: of the stream's error event. */
export function messagesRunError(error: MillraceError, type: string, mayRetry: boolean): Response {
  const { headers } = errorResponse(error)
  headers.delete('www-authenticate')
  if (type === 'rate_limit_error' && mayRetry) return inForm(429, { type, message: error.message }, headers)
  headers.delete('retry-after')
  headers.set('x-should-retry', 'false')
  return inForm(500, { type: type === 'run_failed' ? 'api_error' : type, message: error.message }, headers)
}

function inForm(status: number, error: { type: string; message: string }, headers: Headers): Response {
  headers.set('request-id', requestId())
  headers.set('content-type', 'application/json')
  headers.delete('content-length')
  return new Response(JSON.stringify({ type: 'error', error }), { status, headers })
}

/** Another one for each request. */
export function requestId(): string {
  return `req_${crypto.randomUUID().replaceAll('-', '')}`
}

/** Anthropic's clients take 529 for a server that has too much to do. */
const overloaded: ReadonlySet<string> = new Set(['too-many-streams', 'too-many-runs'])

function statusFor({ code }: MillraceError, usual: number): number {
  if (code === 'run-failed') return 500
  if (code === 'thread-busy') return 429
  return usual === 503 || overloaded.has(code) ? 529 : usual
}

const types: ReadonlyMap<number, string> = new Map([
  [401, 'authentication_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
  [504, 'timeout_error'],
  [529, 'overloaded_error'],
])

function typeFor(status: number): string {
  return types.get(status) ?? (status < 500 ? 'invalid_request_error' : 'api_error')
}
