import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isDeepText, maxDepth, parseJson, recordable, toJson, tooDeep } from './json.ts'

describe('JSON of parts', () => {
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
      'NaN',
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

  test('what throws while it is read costs only itself', () => {
    const bad = {
      toJSON: () => {
        throw new Error('ha')
      },
    }
    expect(toJson({ kept: [1, bad], bad })).toEqual({ kept: [1, '[not JSON: ha]'], bad: '[not JSON: ha]' })
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    expect(toJson({ kept: 1, proxy })).toEqual({ kept: 1, proxy: expect.stringContaining('[not JSON') })
  })

  function nest(levels: number, core: unknown): unknown {
    let value = core
    for (let i = 0; i < levels; i++) value = i % 2 === 0 ? [value] : { value }
    return value
  }

  test('text and values have the same bound, and what passes it goes in and out as it is', () => {
    const most = nest(maxDepth, 1)
    const text = JSON.stringify(most)
    expect(parseJson(text)).toEqual(most)
    expect(recordable(most)).toBe(most)
    expect(toJson(most)).toEqual(most)
    const more = JSON.stringify([most])
    expect(() => parseJson(more)).toThrow('nested deeper than 256 levels')
    expect(JSON.stringify(recordable([most]))).toBe(more.replace('[1]', JSON.stringify(tooDeep)))
    expect(toJson([most])).toEqual(recordable([most]))
  })

  test('brackets inside texts are no levels, also behind quotes and backslashes', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: fc.constantFrom('[', '{', '"', '\\', ']', 'x'), maxLength: 400 })),
        (texts) => {
          expect(parseJson(JSON.stringify(texts))).toEqual(texts)
        },
      ),
    )
    expect(isDeepText('['.repeat(257))).toBe(true)
    expect(isDeepText('[]'.repeat(1000))).toBe(false)
  })

  test('values of any depth, and endless ones, are made recordable', () => {
    for (const levels of [maxDepth + 1, 5000, 200_000]) {
      const value = toJson(nest(levels, 1))
      expect(JSON.stringify(value)).toContain(tooDeep)
      expect(recordable(value)).toBe(value)
    }
    const endless: object = new Proxy(
      {},
      {
        ownKeys: () => ['a'],
        get: () => endless,
        getOwnPropertyDescriptor: () => ({ value: endless, enumerable: true, configurable: true }),
      },
    )
    expect(recordable(toJson({ endless }))).toBeDefined()
    class Node {
      toJSON(): object {
        return { next: new Node() }
      }
    }
    expect(JSON.stringify(toJson(new Node()))).toContain(tooDeep)
  })

  test('a number out of range is refused, not read as Infinity; large numbers and texts about them are read', () => {
    const long = '9'.repeat(309)
    for (const text of [
      '1e999',
      '-1E+400',
      '{"a":[1,1e309]}',
      long,
      `-${long}.5`,
      `${'9'.repeat(250)}e99`,
      '1.5e999',
    ]) {
      expect(() => parseJson(text), text).toThrow(new SyntaxError('a number is out of range'))
    }
    expect(parseJson('[1e308, 1e-999, 0.1e100, 12e5]')).toEqual([1e308, 0, 1e99, 12e5])
    expect(parseJson('{"1e999": "1e999"}')).toEqual({ '1e999': '1e999' })
    expect(parseJson(`"${long}"`)).toBe(long)
    expect(parseJson('[1e100, 2]', (_, value) => (value === 2 ? 3 : value))).toEqual([1e100, 3])
  })

  test('a number that JSON cannot hold becomes text, never null', () => {
    expect(toJson({ a: Infinity, b: [-Infinity, Number.NaN] })).toEqual({ a: 'Infinity', b: ['-Infinity', 'NaN'] })
    expect(recordable({ a: { b: Infinity } })).toEqual({ a: { b: 'Infinity' } })
  })

  test('the depth of a text is that of its value, whatever its strings hold', () => {
    const strings = fc.string({ unit: fc.constantFrom('"', '\\', '[', '{', ']', '}', 'a', '1', 'e', '\n', '😀') })
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof({ maxDepth: 6 }, strings, fc.integer(), tie('list'), tie('object')),
      list: fc.array(tie('value'), { maxLength: 3 }),
      object: fc.dictionary(strings, tie('value'), { maxKeys: 3 }),
    }))
    const depthOf = (given: unknown): number =>
      typeof given !== 'object' || given === null ? 0 : 1 + Math.max(0, ...Object.values(given).map(depthOf))
    fc.assert(
      fc.property(value, fc.integer({ min: 1, max: 8 }), (given, most) => {
        const text = JSON.stringify(given)
        expect(isDeepText(text, most)).toBe(depthOf(given) > most)
        expect(parseJson(text)).toEqual(JSON.parse(text))
        for (let end = 0; end < text.length; end++) expect(typeof isDeepText(text.slice(0, end), most)).toBe('boolean')
      }),
    )
  })

  test('a long text with many escapes is read in linear time', () => {
    for (const piece of ['\\\\', '\\"', '\\\\\\"', 'x']) {
      const text = `{"a":"${piece.repeat(2_000_000)}"}`
      expect(typeof (parseJson(text) as { a: string }).a).toBe('string')
    }
    expect(() => parseJson(`"${'\\'.repeat(5_000_001)}"`)).toThrow(SyntaxError)
  })
})
