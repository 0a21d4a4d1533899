/** Errors that OpenAI sends in a stream, as `@ai-sdk/openai` reports them: as a part, or in place of the answer. */
import { APICallError } from '@ai-sdk/provider'
import { createProviderStreamError } from '@ai-sdk/provider-utils'
import type { RequestFacts } from './decoder.ts'

interface StreamError {
  message: string
  code: string | number | undefined
  type: string | undefined
}

type ProviderStreamError = ReturnType<typeof createProviderStreamError>

/** Undefined if the package does not recognise the frame as an error. */
export function openAIStreamError(frame: unknown): ProviderStreamError | undefined {
  const error = readError(frame)
  if (error === undefined) return undefined
  const statusCode = statusOf(error)
  const isQuota = error.code === 'insufficient_quota' || error.type === 'insufficient_quota'
  const isPassing = statusCode === 408 || statusCode === 409 || statusCode === 429 || statusCode >= 500
  return createProviderStreamError({
    message: error.message,
    type: error.type,
    code: error.code,
    statusCode,
    isRetryable: !isQuota && isPassing,
    data: frame,
  })
}

/** An error before any output: `doStream` rejects with it. */
export function openAIRefusal(frame: unknown, { url, body, responseHeaders }: RequestFacts): APICallError {
  const error = openAIStreamError(frame)
  return new APICallError({
    message: error?.message ?? 'OpenAI stream failed before any output was generated',
    url,
    requestBodyValues: body,
    statusCode: error?.statusCode ?? 500,
    responseHeaders,
    responseBody: JSON.stringify(frame),
    data: frame,
    isRetryable: error?.isRetryable,
  })
}

function readError(frame: unknown): StreamError | undefined {
  const value = recordOf(frame)
  if (value === undefined) return undefined
  if (value['type'] === 'response.failed') {
    const error = recordOf(recordOf(value['response'])?.['error'])
    const message = error?.['message']
    if (typeof message !== 'string') return undefined
    return { message, code: codeOf(error?.['code']), type: 'response.failed' }
  }
  const inner = recordOf(value['error'])
  const error = inner ?? value
  const { message, type, code } = error
  const isError = inner !== undefined || typeof type === 'string' || 'code' in error || 'param' in error
  if (typeof message !== 'string' || !isError) return undefined
  return { message, code: codeOf(code), type: typeof type === 'string' ? type : undefined }
}

function statusOf({ code, type }: StreamError): number {
  const said = typeof code === 'string' && /^\d{3}$/.test(code) ? Number(code) : code
  if (typeof said === 'number' && Number.isInteger(said) && said >= 400 && said <= 599) return said
  const words = [code, type]
    .filter((word) => word !== undefined)
    .join(' ')
    .toLowerCase()
  return statuses.find(([terms]) => terms.some((term) => words.includes(term)))?.[1] ?? 500
}

/** The first that fits wins. */
const statuses: readonly (readonly [readonly string[], number])[] = [
  [['insufficient_quota', 'rate_limit'], 429],
  [['authentication'], 401],
  [['permission'], 403],
  [['not_found'], 404],
  [['invalid', 'bad_request', 'context_length'], 400],
  [['overload'], 503],
  [['timeout'], 504],
]

function recordOf(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
}

function codeOf(value: unknown): string | number | undefined {
  return typeof value === 'string' || typeof value === 'number' ? value : undefined
}
