/** A server that speaks OpenAI's older protocol, as `@ai-sdk/openai` reports it. */
import { APICallError } from '@ai-sdk/provider'
import type { RequestFacts } from '../decoder.ts'
import { isObject } from '../read-json.ts'

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
  return isObject(value) && Array.isArray(value['choices']) && typeof value['type'] !== 'string'
}
