/** Errors in OpenAI's format: `{"error": {message, type, code, param}}`, with OpenAI's codes. */
import { MillraceError } from '../../part/error.ts'
import { BadParameter } from '../../wire/openai/from-openai-messages.ts'
import { toOpenAiCode } from '../../wire/openai/openai-output.ts'
import { errorResponse } from '../../delivery/http-error.ts'

export function isOpenAiPath(path: string): boolean {
  return /^(?:\/api)?\/v1(?:\/|$)/u.test(path)
}

export function openAiError(error: Error): Response {
  return errorResponse(error, (code) => ({ code: toOpenAiCode(code), param: paramOf(error) }))
}

/** Temporary failures, after which a retry makes sense. */
const passing: ReadonlySet<number> = new Set([429, 503])

/**
 * The failure of a run. OpenAI's client asks again after a 409 or 5xx, unless `x-should-retry: false` says no; other clients do not know that
 * header. LangChain repeats all but 400 to 407, 409 and 413; the AI SDK 408, 409, 429 and 5xx. Where a second run would repeat what the first
 * has done (`hasActed`), or the same would come of it because of the server's own key, the status is one that none of them repeats.
 */
export function openAiRunError(error: Error, hasActed: boolean): Response {
  const response = openAiError(error)
  const { status, headers } = response
  if (hasActed || isAboutKey(error)) {
    headers.delete('retry-after')
    headers.set('x-should-retry', 'false')
    if (!isFinal(status)) return new Response(response.body, { status: 400, headers })
  } else if (!passing.has(status)) headers.set('x-should-retry', 'false')
  return response
}

/** The provider's key is missing or wrong. Not a 401: that would be the client's own. */
function isAboutKey(error: Error): boolean {
  if (!(error instanceof MillraceError)) return false
  const { code, status } = error
  return code === 'missing-key' || (code === 'model-refused' && (status === 401 || status === 403))
}

function isFinal(status: number): boolean {
  return (status >= 400 && status <= 407) || status === 413
}

/** A redirect or an error that a step returned. As for a failed run: a retry would run the agent's tools again. */
export function withoutRetry(response: Response): Response {
  if (response.status === 409 || response.status >= 500) response.headers.set('x-should-retry', 'false')
  return response
}

export function paramOf(error: Error): string | null {
  if (error instanceof BadParameter) return error.param
  if (!(error instanceof MillraceError)) return null
  if (error.code === 'unknown-agent') return 'model'
  // A key that the agent's `input` declares is a parameter of the request.
  const fault = /^Invalid input: \$input\.([\w-]+)/u.exec(error.message)
  return fault?.[1] ?? /^messages\[[^\s:]+/u.exec(error.message)?.[0] ?? null
}
