/** Errors as OpenAI's clients read them: `{"error": {message, type, code, param}}`, with the codes that they know. */
import { MillraceError } from '../part/error.ts'
import { BadParameter } from '../wire/from-openai-messages.ts'
import { toOpenAiCode } from '../wire/openai-output.ts'
import { errorResponse } from './http-error.ts'

export function isOpenAiPath(path: string): boolean {
  return /^(?:\/api)?\/v1(?:\/|$)/u.test(path)
}

export function openAiError(error: Error): Response {
  return errorResponse(error, (code) => ({ code: toOpenAiCode(code), param: paramOf(error) }))
}

/** Statuses whose cause passes by itself: nothing was wrong with the run. */
const passing: ReadonlySet<number> = new Set([429, 503])

/**
 * The failure of a run. OpenAI's own clients send a request again, twice, after a 409 or 5xx; an agent's tools would run
 * again with it, and a run that somebody has stopped would go on.
 */
export function openAiRunError(error: Error): Response {
  const response = openAiError(error)
  if (!passing.has(response.status)) response.headers.set('x-should-retry', 'false')
  return response
}

function paramOf(error: Error): string | null {
  if (error instanceof BadParameter) return error.param
  if (!(error instanceof MillraceError)) return null
  if (error.code === 'unknown-agent') return 'model'
  // What an agent's `input` declares is the request's own parameter.
  const fault = /^Invalid input: \$input\.([\w-]+)/u.exec(error.message)
  return fault?.[1] ?? null
}
