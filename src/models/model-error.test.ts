import { APICallError, JSONParseError, TypeValidationError } from '@ai-sdk/provider'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { MillraceError } from '../part/error.ts'
import { isRetryable, toModelError } from './model-error.ts'

const model = { provider: 'openai.responses', modelId: 'm', keyVariables: ['OPENAI_API_KEY'] }
const http = (statusCode: number | undefined, rest: Partial<ConstructorParameters<typeof APICallError>[0]> = {}) =>
  new APICallError({ message: 'said', url: 'http://x?key=SECRET', requestBodyValues: {}, statusCode, ...rest })

describe('model errors', () => {
  test.each<[unknown, 'request' | 'stream' | 'part', string, number | undefined, boolean]>([
    [http(400), 'request', 'model-refused', 400, false],
    [http(401), 'request', 'model-refused', 401, false],
    [http(404), 'request', 'model-refused', 404, false],
    [http(408), 'request', 'model-unavailable', 408, true],
    [http(429), 'request', 'rate-limited', 429, true],
    [http(500), 'request', 'model-unavailable', 500, true],
    [http(529), 'request', 'model-unavailable', 529, true],
    [
      http(undefined, { message: 'Cannot connect to API: connect ECONNREFUSED' }),
      'request',
      'model-unavailable',
      undefined,
      true,
    ],
    [http(200, { message: 'Failed to process successful response' }), 'request', 'connection-lost', undefined, true],
    [http(200), 'stream', 'connection-lost', undefined, true],
    [new TypeError('terminated'), 'stream', 'connection-lost', undefined, true],
    [Object.assign(new Error('x'), { code: 'ECONNRESET' }), 'request', 'model-unavailable', undefined, true],
    [new Error('x'), 'request', 'model-failed', undefined, false],
    ['just text', 'request', 'model-failed', undefined, false],
    [null, 'part', 'model-failed', undefined, false],
    [
      { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
      'part',
      'model-unavailable',
      503,
      true,
    ],
    [{ response: { error: { code: 'rate_limit_exceeded', message: 'slow' } } }, 'part', 'rate-limited', 429, true],
    [{ code: 'insufficient_quota', message: 'pay' }, 'part', 'rate-limited', 429, false],
    [
      http(429, { data: { error: { code: 'insufficient_quota', message: 'pay' } } }),
      'request',
      'rate-limited',
      429,
      false,
    ],
    [{ code: 503, status: 'UNAVAILABLE', message: 'later' }, 'part', 'model-unavailable', 503, true],
    [{ message: 'odd', code: 7 }, 'part', 'model-failed', undefined, false],
  ])('%s at the %s is %s', (raw, place, code, status, again) => {
    const error = toModelError(raw, place, model)
    expect(error).toMatchObject({ code, status, cause: raw })
    expect(error.message).toContain('openai:m')
    expect(error.message).not.toContain('SECRET')
    expect(isRetryable(error)).toBe(again)
  })

  test('an error of ours stays as it is', () => {
    const own = new MillraceError('missing-key', 'x')
    expect(toModelError(own, 'request', model)).toBe(own)
    expect(isRetryable(own)).toBe(false)
    expect(isRetryable(new Error('x'))).toBe(false)
  })

  test('only a refused key names its variable', () => {
    expect(toModelError(http(403), 'request', model).message).toBe(
      'openai:m refused the request (403): said (check OPENAI_API_KEY)',
    )
    expect(toModelError(http(400), 'request', model).message).not.toContain('OPENAI_API_KEY')
  })

  const googleBody = {
    error: { code: 429, message: 'x', details: [{ '@type': 't/google.rpc.RetryInfo', retryDelay: '34.4s' }] },
  }
  test.each<[unknown, number | undefined]>([
    [http(429, { responseHeaders: { 'retry-after': '7' } }), 7],
    [http(429, { responseHeaders: { 'retry-after': '0' } }), 0],
    [http(429, { responseHeaders: { 'retry-after-ms': '1500', 'retry-after': '9' } }), 1.5],
    [http(503, { responseHeaders: { 'retry-after': 'Mon, 01 Jan 2001 00:00:00 GMT' } }), 0],
    [http(429, { responseHeaders: { 'retry-after': 'soon' } }), undefined],
    [http(429, { data: googleBody }), 34.4],
    [http(429, { responseBody: JSON.stringify(googleBody) }), 34.4],
    [googleBody, 34.4],
    [http(429), undefined],
  ])('when to try again (%#)', (raw, seconds) => {
    expect(toModelError(raw, 'request', model).retryAfter).toBe(seconds)
  })

  test('a date to come is seconds from now', () => {
    const date = new Date(Date.now() + 60_000).toUTCString()
    const { retryAfter } = toModelError(http(429, { responseHeaders: { 'retry-after': date } }), 'request', model)
    expect(retryAfter).toBeGreaterThan(50)
    expect(retryAfter).toBeLessThanOrEqual(60)
  })

  test.each([
    ['{"error":"model \'x\' not found"}', "model 'x' not found"],
    ['{"detail":"no such model"}', 'no such model'],
    ['{"message":"gone"}', 'gone'],
    ['<html>', 'Not Found (an HTML page)'],
    ['<html><title> 502 Bad\n Gateway</title>', 'an HTML page: "502 Bad Gateway"'],
    ['[{"error":{"code":400,"message":"Unknown name"}}]', 'Unknown name'],
    ['{"detail":[{"type":"missing","loc":["body","x"],"msg":"Field required"}]}', 'body.x: Field required'],
    [
      '{"error":{"message":"Provider returned error","metadata":{"raw":"{\\"error\\":{\\"message\\":\\"too long\\"}}"}}}',
      'Provider returned error: too long',
    ],
    ['{"error":{"message":{"detail":"nested"}}}', 'nested'],
    ['{"error":true,"message":"flag"}', 'flag'],
    ['plain words', 'plain words'],
    ['', 'Not Found'],
  ])('%s says %s', (responseBody, said) => {
    expect(toModelError(http(404, { message: 'Not Found', responseBody }), 'request', model).message).toContain(said)
  })

  const refused = (message: string) => http(400, { message })
  const own = (message: string, rest: object = {}) => Object.assign(new Error(message), rest)
  test.each<[unknown, 'request' | 'stream', string, string | undefined]>([
    [
      refused('see http://me:SECRET@h/x?key=SECRET'),
      'request',
      'openai:m refused the request (400): see http://h/x?key=…',
      undefined,
    ],
    [
      own('connect 10.0.0.7:1', { code: 'ECONNREFUSED' }),
      'request',
      'openai:m cannot be reached (ECONNREFUSED).',
      'connect 10.0.0.7:1',
    ],
    [
      http(undefined, {
        message: 'Cannot connect to API: connect 10.0.0.7',
        cause: own('connect', { code: 'ECONNRESET' }),
      }),
      'request',
      'openai:m cannot be reached (ECONNRESET).',
      'AI_APICallError: Cannot connect to API: connect 10.0.0.7',
    ],
    [
      own('read 10.0.0.7'),
      'stream',
      'The connection to openai:m broke before the answer was complete.',
      'read 10.0.0.7',
    ],
    [new TypeError('x.y is undefined'), 'request', 'openai:m failed.', 'TypeError: x.y is undefined'],
    [
      new AggregateError([own('connect ::1'), own('connect 127.0.0.1')], '', {
        cause: own('x', { code: 'ECONNREFUSED' }),
      }),
      'request',
      'openai:m cannot be reached (ECONNREFUSED).',
      'connect ::1; connect 127.0.0.1; caused by: x',
    ],
    [{ config: { headers: { authorization: 'SECRET' } }, why: 'odd' }, 'request', 'openai:m failed.', '{"why":"odd"}'],
    [
      { statusCode: 418, headers: { cookie: 'SECRET' } },
      'request',
      'openai:m refused the request (418): {"statusCode":418}',
      undefined,
    ],
    [
      http(400, { message: '', requestBodyValues: { a: 'SECRET' } }),
      'request',
      'openai:m refused the request (400): no reason given',
      undefined,
    ],
  ])(
    'what the provider said is for everybody, what a package or the machine says for the log (%#)',
    (raw, place, message, detail) => {
      const error = toModelError(raw, place, model)
      expect(error).toMatchObject({ message, detail })
      expect(`${error.message} ${error.detail}`).not.toContain('SECRET')
    },
  )

  test('no message has the dump of a validator, whoever threw it', () => {
    const dump = z.object({ a: z.string() }).safeParse({ a: 1 }).error!
    const wrapped = TypeValidationError.wrap({ value: { secret: 1 }, cause: dump })
    const unreadable = new JSONParseError({ text: '{"secret', cause: dump })
    for (const raw of [dump, wrapped, unreadable, http(200, { message: 'Invalid JSON response', cause: wrapped })]) {
      for (const place of ['request', 'stream', 'part'] as const) {
        const { message } = toModelError(raw, place, model)
        expect(message).not.toMatch(/Type validation|invalid_type|secret|\n/u)
      }
    }
  })
})
