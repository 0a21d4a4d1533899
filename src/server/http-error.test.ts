import { expect, test } from 'vitest'
import { MillraceError } from '../part/error.ts'
import { errorResponse } from './http-error.ts'

test.each([
  ['constructor', 500],
  ['__proto__', 500],
  ['invalid-messages', 400],
  ['bad-input', 400],
])('the status of an error with the code %s is %i', (code, status) => {
  expect(errorResponse(new MillraceError(code, 'm')).status).toBe(status)
})
