/** OpenAI's errors inside a stream, with the status and the advice on retrying that `@ai-sdk/openai` gives them. */
import { APICallError } from '@ai-sdk/provider'
import { createProviderStreamError, type ProviderStreamError } from '@ai-sdk/provider-utils'
import type { RequestFacts } from '../decoder.ts'

interface StreamError {
  message: string
  code?: string | number | undefined
  type?: string | undefined
}

/** Undefined if the event says nothing. */
export function toProviderError(frame: unknown): ProviderStreamError | undefined {
  const error = errorIn(frame)
  if (error === undefined) return undefined
  const { message, type, code } = error
  const statusCode = statusOf(error)
  // Waiting does not help an account without credit.
  const isSpent = code === 'insufficient_quota' || type === 'insufficient_quota'
  const isPassing = statusCode === 408 || statusCode === 409 || statusCode === 429 || statusCode >= 500
  return createProviderStreamError({
    message,
    ...{ type, code },
    statusCode,
    isRetryable: !isSpent && isPassing,
    data: frame,
  })
}

/** The error that `doStream` rejects with when it comes before any output. */
export function toRefusal(frame: unknown, { url, body, responseHeaders }: RequestFacts): APICallError {
  const error = toProviderError(frame)
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

/** The server speaks OpenAI's older protocol. */
export function toMismatch(value: unknown, cause: unknown, request: RequestFacts): APICallError {
  return new APICallError({
    message:
      'Received a Chat Completions stream while using the OpenAI Responses API. ' +
      "The default OpenAI provider model uses the Responses API. If your custom baseURL targets a Chat Completions-compatible endpoint, use openai.chat('model-id') or createOpenAI(...).chat('model-id') instead. " +
      'You can also use @ai-sdk/openai-compatible for OpenAI-compatible providers.',
    url: request.url,
    requestBodyValues: request.body,
    responseHeaders: request.responseHeaders,
    responseBody: JSON.stringify(value),
    cause,
    data: value,
    isRetryable: false,
  })
}

export function isChatChunk(value: unknown): boolean {
  const chunk = recordOf(value)
  return chunk !== undefined && Array.isArray(chunk['choices']) && typeof chunk['type'] !== 'string'
}

function errorIn(frame: unknown): StreamError | undefined {
  const value = recordOf(frame)
  if (value === undefined) return undefined
  if (value['type'] === 'response.failed') {
    const error = recordOf(recordOf(value['response'])?.['error'])
    const message = error?.['message']
    return typeof message === 'string' ? { message, code: codeOf(error), type: 'response.failed' } : undefined
  }
  const nested = recordOf(value['error'])
  const error = nested ?? value
  const { message, type } = error
  if (typeof message !== 'string') return undefined
  if (nested === undefined && typeof type !== 'string' && !('code' in error) && !('param' in error)) return undefined
  return { message, code: codeOf(error), type: typeof type === 'string' ? type : undefined }
}

function statusOf({ code, type }: StreamError): number {
  const given = typeof code === 'string' && /^\d{3}$/.test(code) ? Number(code) : code
  if (typeof given === 'number' && Number.isInteger(given) && given >= 400 && given <= 599) return given
  const words = [code, type]
    .filter((value) => value !== undefined)
    .join(' ')
    .toLowerCase()
  return statuses.find(([word]) => words.includes(word))?.[1] ?? 500
}

/** The first that is found counts. */
const statuses: [string, number][] = [
  ['insufficient_quota', 429],
  ['rate_limit', 429],
  ['authentication', 401],
  ['permission', 403],
  ['not_found', 404],
  ['invalid', 400],
  ['bad_request', 400],
  ['context_length', 400],
  ['overload', 503],
  ['timeout', 504],
]

function codeOf(error: Record<string, unknown> | undefined): string | number | undefined {
  const code = error?.['code']
  return typeof code === 'string' || typeof code === 'number' ? code : undefined
}

function recordOf(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
}
