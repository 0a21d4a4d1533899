import { expect, test } from 'vitest'
import { valueAt } from './json-path.ts'

const json = { a: { 'b c': [10, { d: null }] }, list: [], 'x.y': 1, __proto__x: 2 }

test.each([
  ['a["b c"][1].d', null],
  ["$.a['b c'][0]", 10],
  ['a["b c"].0', 10],
  ['a["b c"][-2]', 10],
  ['["x.y"]', 1],
  ['', json],
  ['$', json],
])('%s', (path, value) => expect(valueAt(json, path)).toEqual({ value }))

test.each([
  ['b', 'it has the keys a, list, x.y, __proto__x.'],
  ['a.b', '"a" has the keys b c.'],
  ['list[0]', '"list" is a list of 0.'],
  ['a["b c"].x', '"a.b c" is a list of 2, from [0] to [1].'],
  ['a["b c"][0].x', '"a.b c[0]" is a number, with nothing inside.'],
  ['a["b c"][1].d.e', '"a.b c[1].d" is null, with nothing inside.'],
  ['toString', 'it has the keys'],
  ['a[', 'it is no path'],
  ['a..b', 'it is no path'],
  ['a[*]', 'it is no path'],
])('%s fits nothing', (path, words) => expect((valueAt(json, path) as { fault: string }).fault).toContain(words))
