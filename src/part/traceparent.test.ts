import { describe, expect, test } from 'vitest'
import { toTraceparent } from './traceparent.ts'

const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
const parent = '00f067aa0ba902b7'

describe('toTraceparent', () => {
  test.each([
    [`00-${trace}-${parent}-01`, true],
    [` 00-${trace}-${parent}-00 `, true],
    [`cc-${trace}-${parent}-01-what-comes`, true],
    [`00-${trace}-${parent}-01-more`, false],
    [`cc-${trace}-${parent}-01.more`, false],
    [`cc-${trace}-${parent}-01-${'x'.repeat(300)}`, false],
    [`ff-${trace}-${parent}-01`, false],
    [`00-${trace.toUpperCase()}-${parent}-01`, false],
    [`00-${'0'.repeat(32)}-${parent}-01`, false],
    [`00-${trace}-${'0'.repeat(16)}-01`, false],
    [`00-${trace}-${parent}`, false],
    [`00-${trace}-${parent}-01, 00-${trace}-${parent}-01`, false],
    ['', false],
    [undefined, false],
    [null, false],
    [{}, false],
  ])('%s', (given, isValid) => {
    expect(toTraceparent(given)).toBe(isValid ? (given as string).trim() : undefined)
  })
})
