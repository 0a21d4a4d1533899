/** Errors in OpenAI's format: `{"error": {message, type, code, param}}`, with OpenAI's codes. */
import { MillraceError } from '../../part/error.ts'
import { BadParameter } from '../../wire/openai/from-openai-messages.ts'
import { toOpenAiCode } from '../../wire/openai/openai-output.ts'
import { errorResponse } from '../../answer/http-error.ts'

export function isOpenAiPath(path: string): boolean {
  return /^(?:\/api)?\/v1(?:\/|$)/u.test(path)
}

export function openAiError(error: Error): Response {
  return errorResponse(error, (code) => ({ code: toOpenAiCode(code), param: paramOf(error) }))
}

/** Temporary failures, after which a retry makes sense. */
const passing: ReadonlySet<number> = new Set([429, 503])

/**
 * The failure of a run. OpenAI's clients retry twice after a 409 or 5xx. That would run the agent's tools again, or restart a
 * run that was stopped, so `x-should-retry: false` prevents it.
 */
export function openAiRunError(error: Error): Response {
  const response = openAiError(error)
  if (!passing.has(response.status)) response.headers.set('x-should-retry', 'false')
  return response
}

/** A redirect or an error that a step returned. As for a failed run: a retry would run the agent's tools again. */
export function withoutRetry(response: Response): Response {
  if (response.status === 409 || response.status >= 500) response.headers.set('x-should-retry', 'false')
  return response
}

function paramOf(error: Error): string | null {
  if (error instanceof BadParameter) return error.param
  if (!(error instanceof MillraceError)) return null
  if (error.code === 'unknown-agent') return 'model'
  // A key that the agent's `input` declares is a parameter of the request.
  const fault = /^Invalid input: \$input\.([\w-]+)/u.exec(error.message)
  return fault?.[1] ?? /^messages\[[^\s:]+/u.exec(error.message)?.[0] ?? null
}
