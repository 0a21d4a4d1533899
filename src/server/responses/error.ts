/** Errors of the Responses routes, in OpenAI's format: `{"error": {message, type, code, param}}`. */
import { errorResponse } from '../../delivery/http-error.ts'
import { MillraceError } from '../../part/error.ts'
import { BadParameter } from '../../wire/openai/from-openai-messages.ts'
import { toOpenAiCode } from '../../wire/openai/openai-output.ts'
import { paramOf } from '../openai/error.ts'

/** A field whose value asks for what this server does not do. */
export class UnsupportedParameter extends BadParameter {}

/** `previous_response_id` names nothing that this caller can continue. */
export class UnknownPrevious extends BadParameter {
  constructor(id: string) {
    const cure =
      'It may be deleted, another caller’s, or it was sent with store: false. Send the whole conversation instead.'
    super('previous_response_id', `names no response: ${id.slice(0, 100)}. ${cure}`)
  }
}

export function unknownResponse(id: string): MillraceError {
  return new MillraceError('not-found', `There is no response ${id.slice(0, 200)}.`, { status: 404 })
}

export function responsesError(error: Error): Response {
  // Without a text there, clients of OpenResponses show no message: findings/open-responses-hides-errors-without-param.sh.
  const response = errorResponse(error, (code) => ({ code: codeOf(error, code), param: paramOf(error) ?? '' }))
  if (!(error instanceof MillraceError) || error.code !== 'thread-busy') return response
  // Clients of this protocol wait for as long as they are told after a 429 alone.
  response.headers.set('retry-after', '1')
  return new Response(response.body, { status: 429, headers: response.headers })
}

function codeOf(error: Error, code: string): string {
  if (error instanceof UnsupportedParameter) return 'unsupported_parameter'
  if (error instanceof UnknownPrevious) return 'previous_response_not_found'
  return toOpenAiCode(code)
}
