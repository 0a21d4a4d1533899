import { APICallError } from '@ai-sdk/provider'
import { describe, expect, test } from 'vitest'
import {
  wordsOf,
  cutError,
  fromErrorValue,
  messageOf,
  MillraceError,
  toErrorValue,
  toPublicError,
  unexplained,
  wholeMessage,
} from './error.ts'
import { toJson } from './json.ts'

const call = new APICallError({
  message: 'refused',
  url: 'https://user:pa55word@api.example/v1?key=url-key',
  requestBodyValues: { messages: ['body-canary'] },
  statusCode: 400,
  responseHeaders: { 'set-cookie': 'header-canary' },
  responseBody: 'response-canary',
  data: { more: 'data-canary' },
})
const hostile = new Proxy(
  {},
  {
    get() {
      throw new Error('no')
    },
    ownKeys() {
      throw new Error('no')
    },
  },
)

describe('what is thrown, in words', () => {
  test.each<[string, unknown, string]>([
    ['an error', new Error('broken'), 'broken'],
    ['one of a kind', new TypeError('x is not a function'), 'TypeError: x is not a function'],
    [
      'causes, each behind the other',
      new Error('a', { cause: new RangeError('b', { cause: 'c' }) }),
      'a; caused by: RangeError: b; caused by: c',
    ],
    ['a cause that the message repeats', new Error('it failed: b', { cause: new Error('b') }), 'it failed: b'],
    [
      'several errors at once',
      new AggregateError([new Error('a'), 'b', new Error('c', { cause: new Error('d') })], 'all failed'),
      'AggregateError: all failed (a; b; c; caused by: d)',
    ],
    ['several without a word of its own', new AggregateError([new Error('a'), new Error('b')]), 'a; b'],
    ['no words at all', new Error(), 'Error'],
    ['a code only', Object.assign(new Error(), { code: 'ECONNREFUSED' }), '{"code":"ECONNREFUSED"}'],
    ['text', 'just text', 'just text'],
    ['nothing', undefined, 'undefined'],
    ['a symbol', Symbol('s'), 'Symbol(s)'],
    ['a number', 7n, '7'],
    ['an object that looks like an error', { message: 'said', code: 'E', headers: { a: 'canary' } }, 'said'],
    ['an object with fields', { code: 7, apiKey: 'canary', config: { headers: 'canary' } }, '{"code":7}'],
    ['an empty object', {}, 'an object without a message'],
    ['what throws when it is read', hostile, 'an error that cannot be read'],
  ])('%s', (_, thrown, words) => {
    expect(wordsOf(thrown)).toBe(words)
    expect(toErrorValue(thrown).code).toMatch(/^(error|E)$/)
  })

  test('a circle of causes ends', () => {
    const error = new Error('round')
    error.cause = new Error('and round', { cause: error })
    expect(wordsOf(error).length).toBeLessThan(200)
  })

  test.each([
    ['a call of a provider', call],
    ['behind another error', new Error('the step failed', { cause: call })],
    ['among others', new AggregateError([call], 'all failed')],
    ['as a plain object', { ...call }],
  ])('%s: nothing of its request, its headers and its answer', (_, thrown) => {
    const told = [
      wordsOf(thrown),
      messageOf(fromErrorValue(toErrorValue(thrown))),
      JSON.stringify(toErrorValue(thrown)),
    ]
    expect(told.join(' ')).not.toMatch(/canary|pa55word|url-key/)
  })

  test.each([
    ['cannot fetch https://me:pa55@word@host.example/x', 'cannot fetch https://host.example/x'],
    ['GET http://h/x?a=1&api_key=AIza123&b=2 failed', 'GET http://h/x?a=1&api_key=…&b=2 failed'],
    ['"Bearer sk-123456\n" is an invalid header value', '"Bearer …\n" is an invalid header value'],
    ['Basic authentication is off; a bearer token is wanted', 'Basic authentication is off; a bearer token is wanted'],
    ['see https://docs.example/errors#a', 'see https://docs.example/errors#a'],
  ])('credentials are known by their form: %s', (text, clean) => {
    expect(wordsOf(new Error(text))).toBe(clean)
  })

  test('a long text costs little', () => {
    wordsOf(new Error('https://'.repeat(50_000)))
    wordsOf(new Error('?'.repeat(200_000)))
    wordsOf(new Error('Bearer '.repeat(50_000)))
  })
})

test('an error that is returned, not thrown, is its name and its message, whatever its own toJSON says', () => {
  class Talkative extends Error {
    toJSON() {
      return { headers: 'canary' }
    }
  }
  expect(toJson({ error: new Talkative('x') })).toEqual({ error: { name: 'Error', message: 'x' } })
  expect(toJson(new Talkative('x'))).toEqual({ name: 'Error', message: 'x' })
})

test('an error of ours is public; of any other the code is, and its words are the detail', () => {
  const ours = new MillraceError('bad-input', 'say more', { status: 400, retryAfter: 2, step: 'main/a', cause: call })
  const value = { code: 'bad-input', message: 'say more', status: 400, retryAfter: 2, step: 'main/a' }
  expect(toErrorValue(ours)).toEqual(value)
  expect(toErrorValue(fromErrorValue(value))).toEqual(value)
  expect(toPublicError(ours)).toEqual({ code: 'bad-input', message: 'say more', status: 400, retryAfter: 2 })
  const theirs = toErrorValue(new Error('db at 10.0.0.1'), 'step-failed')
  expect(theirs).toEqual({ code: 'step-failed', message: unexplained, detail: 'db at 10.0.0.1' })
  expect(toPublicError(theirs)).toEqual({ code: 'step-failed', message: unexplained })
  expect(wholeMessage(theirs)).toBe('Something went wrong: db at 10.0.0.1')
  // What was recorded before is taken as it is, without fields that are none of an error's.
  expect(toErrorValue({ ...value, headers: 'canary' })).toEqual(value)
})

test('long texts are cut', () => {
  const long = cutError({ code: 'x', message: 'm'.repeat(5000), detail: 'd'.repeat(50_000), status: 1 })
  expect([long.message.length, long.detail!.length, long.status]).toEqual([2001, 8001, 1])
  const short = { code: 'x', message: 'm' }
  expect(cutError(short)).toBe(short)
})
