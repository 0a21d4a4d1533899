import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SlotMap, SlotSet } from './slot-map.ts'

const keys = ['a', 'b', 'c', 'd', 'constructor', '__proto__']

test('a map does what a Map does, whatever comes and goes', () => {
  const step = fc.tuple(fc.constantFrom('set', 'delete', 'clear'), fc.constantFrom(...keys), fc.nat(99))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const lean = new SlotMap<{ n: number }>()
      const map = new Map<string, { n: number }>()
      for (const [what, key, n] of steps) {
        // Rarely, or the maps would stay small.
        if (what === 'clear' && n < 90) continue
        const value = { n }
        if (what === 'set') {
          lean.set(key, value)
          map.set(key, value)
        } else if (what === 'delete') {
          lean.delete(key)
          map.delete(key)
        } else {
          lean.clear()
          map.clear()
        }
        expect(lean.size).toBe(map.size)
        expect([...lean.keys()]).toEqual([...map.keys()])
        expect([...lean.values()]).toEqual([...map.values()])
        for (const each of keys) expect(lean.get(each)).toBe(map.get(each))
      }
    }),
  )
})

test('a set has each object once, and no other set of the same object is touched', () => {
  const objects = Array.from({ length: 5 }, (_, i) => ({ i }))
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), fc.nat(1), fc.nat(4)), { maxLength: 60 }), (steps) => {
      const lean = [new SlotSet<{ i: number }>(), new SlotSet<{ i: number }>()]
      const sets = [new Set<{ i: number }>(), new Set<{ i: number }>()]
      for (const [isAdded, which, at] of steps) {
        const object = objects[at]!
        if (isAdded) {
          lean[which]!.add(object)
          sets[which]!.add(object)
        } else {
          lean[which]!.delete(object)
          sets[which]!.delete(object)
        }
        for (const i of [0, 1]) {
          expect(lean[i]!.size).toBe(sets[i]!.size)
          expect(new Set(lean[i])).toEqual(sets[i])
        }
      }
    }),
  )
})

test('what is deleted while a set is iterated is not visited any more', () => {
  const objects = Array.from({ length: 4 }, (_, i) => ({ i }))
  const set = new SlotSet<{ i: number }>()
  for (const object of objects) set.add(object)
  const visited: number[] = []
  for (const object of set) {
    visited.push(object.i)
    set.delete(object)
    set.delete(objects[2]!)
  }
  expect(visited).toEqual([0, 1, 3])
  expect(set.size).toBe(0)
})
