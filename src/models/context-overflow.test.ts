/** A prompt that is too long is told from other refusals, in the words of each service. */
import { APICallError } from '@ai-sdk/provider'
import { describe, expect, test } from 'vitest'
import { MillraceError } from '../part/error.ts'
import { overflowIn, overflowTexts } from './context-overflow.ts'
import { toModelError } from './model-error.ts'

const model = { provider: 'box', modelId: 'm' }

/** As a server answers before a stream. */
function refusal(statusCode: number, body: object) {
  const raw = new APICallError({
    message: 'Bad Request',
    url: 'http://here',
    requestBodyValues: {},
    statusCode,
    responseHeaders: {},
    responseBody: JSON.stringify(body),
  })
  return toModelError(raw, 'request', model)
}

/** As an event of a stream. */
const inStream = (raw: object) => toModelError(raw, 'part', model)

const openai = (message: string, code: string | null = 'context_length_exceeded') =>
  refusal(400, { error: { message, type: 'invalid_request_error', param: 'messages', code } })
const anthropic = (message: string) =>
  refusal(400, { type: 'error', error: { type: 'invalid_request_error', message } })

test.each<[string, MillraceError, number | undefined]>([
  [
    'OpenAI, chat',
    openai(
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 130013 tokens. Please reduce the length of the messages.",
    ),
    128_000,
  ],
  [
    'OpenAI, Responses',
    openai('Your input exceeds the context window of this model. Please adjust your input and try again.'),
    undefined,
  ],
  [
    'OpenAI, Responses, in the stream',
    inStream({
      type: 'error',
      error: { type: 'invalid_request_error', code: 'context_length_exceeded', message: 'Too long.', param: 'input' },
    }),
    undefined,
  ],
  ['Anthropic', anthropic('prompt is too long: 207253 tokens > 200000 maximum'), 200_000],
  [
    'Anthropic, with max_tokens',
    anthropic(
      'input length and `max_tokens` exceed context limit: 199211 + 20000 > 200000, decrease input length or `max_tokens` and try again',
    ),
    200_000,
  ],
  [
    'Anthropic, 413',
    refusal(413, { type: 'error', error: { type: 'request_too_large', message: 'Request exceeds the maximum size' } }),
    undefined,
  ],
  [
    'Gemini',
    refusal(400, {
      error: {
        code: 400,
        status: 'INVALID_ARGUMENT',
        message: 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
      },
    }),
    1_048_576,
  ],
  [
    'Gemini, another form',
    refusal(400, {
      error: { code: 400, message: 'The input token count exceeds the maximum number of tokens allowed 1048576.' },
    }),
    1_048_576,
  ],
  [
    'vLLM',
    refusal(400, {
      object: 'error',
      message:
        "This model's maximum context length is 32768 tokens. However, you requested 40000 tokens (36000 in the messages, 4000 in the completion).",
      type: 'BadRequestError',
      code: 400,
    }),
    32_768,
  ],
  [
    'vLLM, V1',
    refusal(400, {
      error: {
        message: 'The decoder prompt (length 40012) is longer than the maximum model length of 32768.',
        type: 'BadRequestError',
        code: 400,
      },
    }),
    32_768,
  ],
  [
    'llama.cpp',
    refusal(400, {
      error: {
        code: 400,
        message:
          'the request exceeds the available context size. try increasing the context size or enable context shift',
        type: 'exceed_context_size_error',
        n_prompt_tokens: 9000,
        n_ctx: 8192,
      },
    }),
    8192,
  ],
  [
    'llama.cpp, with the size',
    refusal(400, {
      error: { message: 'request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it' },
    }),
    8192,
  ],
  ['xAI', openai("This model's maximum prompt length is 131072 but the request contains 537812 tokens", null), 131_072],
  ['Bedrock', refusal(400, { message: 'Input is too long for requested model.' }), undefined],
  [
    'an answer that has filled the window',
    new MillraceError('model-incomplete', 'box:m ended its answer with "model_context_window_exceeded".'),
    undefined,
  ],
])('%s', (_, error, window) => {
  expect(overflowIn(error)).toEqual(window === undefined ? {} : { window })
})

describe('other refusals are none', () => {
  test.each<[string, unknown]>([
    ['a wrong key', refusal(401, { error: { message: 'Incorrect API key provided' } })],
    ['a wrong setting', openai("Unsupported parameter: 'max_tokens'", null)],
    [
      'a rate limit in tokens',
      refusal(429, { error: { message: 'Rate limit reached on tokens per min (TPM): Limit 30000' } }),
    ],
    ['max_tokens alone', anthropic('max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens')],
    ['an error of ours', new MillraceError('budget-exceeded', 'prompt is too long')],
    ['no error of ours', new Error('prompt is too long')],
  ])('%s', (_, error) => {
    expect(overflowIn(error)).toBeUndefined()
  })
})

test('each text says where it is from, and in which version it was read', () => {
  for (const { source } of overflowTexts) expect(source).toMatch(/\d/u)
})
