import { expect, test } from 'vitest'
import { LazyMap, LazySet } from './lazy-map.ts'

test('a late map is a map, empty and filled', () => {
  const late = new LazyMap<string, number>()
  const map = new Map<string, number>()
  const same = () => {
    const seen: unknown[] = []
    late.forEach((value, key, whole) => seen.push([key, value, whole === late]))
    expect(seen).toEqual([...map].map(([key, value]) => [key, value, true]))
    expect([...late]).toEqual([...map])
    expect([...late.entries()]).toEqual([...map])
    expect([...late.keys()]).toEqual([...map.keys()])
    expect([...late.values()]).toEqual([...map.values()])
    expect(late.size).toBe(map.size)
    for (const key of ['a', 'b', '__proto__']) {
      expect(late.has(key)).toBe(map.has(key))
      expect(late.get(key)).toBe(map.get(key))
    }
  }
  same()
  expect(late.delete('a')).toBe(false)
  for (const [key, value] of [
    ['a', 1],
    ['__proto__', 2],
    ['a', 3],
    ['b', 4],
  ] as const) {
    late.set(key, value)
    map.set(key, value)
    same()
  }
  expect(late.delete('a')).toBe(map.delete('a'))
  expect(late.delete('a')).toBe(map.delete('a'))
  same()
  late.clear()
  map.clear()
  same()
})

test('a late set is a set, empty and filled', () => {
  const late = new LazySet<string>()
  expect([late.size, late.has('a'), late.delete('a'), ...late]).toEqual([0, false, false])
  late.add('a')
  late.add('a')
  expect([late.size, late.has('a'), late.has('b'), ...late]).toEqual([1, true, false, 'a'])
  expect([late.delete('a'), late.delete('a'), late.size]).toEqual([true, false, 0])
})
