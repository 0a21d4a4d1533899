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

test('a copy, with what only looks plain as JSON has it', () => {
  const given = { list: [{ a: 1 }] }
  const copy = toJson(given) as typeof given
  given.list[0]!.a = 2
  expect(copy).toEqual({ list: [{ a: 1 }] })
  const own = JSON.parse('{"__proto__":{"x":1},"a":[1]}') as object
  expect(Object.getOwnPropertyDescriptor(toJson({ own }) as { own: object }, 'own')?.value).toEqual(own)
  expect(JSON.stringify(toJson(own))).toBe('{"__proto__":{"x":1},"a":[1]}')
  class Point {
    x = 1
    private readonly y = undefined
  }
  const sparse = [1]
  sparse[2] = 3
  expect(toJson([new Point(), Number.NaN, -0, sparse, Object.create(null)])).toEqual([
    { x: 1 },
    null,
    0,
    [1, null, 3],
    {},
  ])
  let deep: unknown = 'end'
  for (let i = 0; i < 200; i++) deep = [deep]
  expect(JSON.stringify(toJson(deep))).toBe(JSON.stringify(deep))
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
  expect(
    toJson({
      get bad(): unknown {
        throw new Error('ha')
      },
    }),
  ).toBe('[not JSON: ha]')
})
