import { describe, expect, test } from 'vitest'
import { MillraceError } from '../part/error.ts'
import { errorResponse } from './http-error.ts'

describe('errorResponse', () => {
  test.each([
    ['constructor', 500],
    ['__proto__', 500],
    ['invalid-messages', 400],
    ['bad-input', 400],
    ['redirect-refused', 502],
    ['line-too-long', 502],
    ['body-too-large', 502],
    ['answer-too-long', 502],
    ['mcp-unreachable', 502],
    ['mcp-lost', 502],
    ['mcp-unauthorized', 502],
    ['tool-failed', 502],
    ['mcp-closed', 503],
  ])('the status of an error with the code %s is %i', (code, status) => {
    expect(errorResponse(new MillraceError(code, 'm')).status).toBe(status)
  })

  test.each([
    ['closing', 3, '3'],
    ['rate-limited', 6.2, '7'],
    ['store-failed', undefined, '1'],
    ['store-closed', undefined, '1'],
    // The run has begun: to ask again is to begin another one.
    ['interrupted', undefined, null],
  ])('an error with the code %s and retryAfter %d says Retry-After: %s', (code, retryAfter, said) => {
    const error = new MillraceError(code, 'm', retryAfter === undefined ? {} : { retryAfter })
    expect(errorResponse(error).headers.get('retry-after')).toBe(said)
  })
})
