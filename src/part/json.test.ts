import fc from 'fast-check'
import { expect, test } from 'vitest'
import { toJson } from './json.ts'

test('plain JSON comes back as it is', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(toJson(value)).toEqual(JSON.parse(JSON.stringify(value)))
    }),
  )
})

test('a value met twice is no cycle; a cycle is cut', () => {
  const shared = { a: 1 }
  const ring: Record<string, unknown> = { list: [shared, shared], again: shared }
  ring['self'] = ring
  ring['deep'] = { ring }
  expect(toJson(ring)).toEqual({
    list: [{ a: 1 }, { a: 1 }],
    again: { a: 1 },
    self: '[circular]',
    deep: { ring: '[circular]' },
  })
})

test('what JSON cannot say is said otherwise', () => {
  const value = {
    n: 1n,
    e: new TypeError('no'),
    m: new Map([['k', 1]]),
    s: new Set([1, 2]),
    d: new Date(0),
    u: undefined,
  }
  expect(toJson(value)).toEqual({
    n: '1',
    e: { name: 'TypeError', message: 'no' },
    m: { k: 1 },
    s: [1, 2],
    d: '1970-01-01T00:00:00.000Z',
  })
  expect(toJson(undefined)).toBeUndefined()
  expect(
    toJson({
      toJSON: () => {
        throw new Error('ha')
      },
    }),
  ).toBe('[not JSON: ha]')
})
