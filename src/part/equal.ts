import { ownValue } from './own-value.ts'

/** Whether two JSON values are equal. Key order is ignored, values of different types are never equal, any depth works. */
export function equal(left: unknown, right: unknown): boolean {
  const pairs: [unknown, unknown][] = [[left, right]]
  for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
    const [a, b] = pair
    if (a === b) continue
    if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
    if (Array.isArray(a) !== Array.isArray(b)) return false
    const keys = Object.keys(a)
    if (keys.length !== Object.keys(b).length) return false
    for (const key of keys) {
      if (!Object.hasOwn(b, key)) return false
      pairs.push([ownValue(a as Record<string, unknown>, key), ownValue(b as Record<string, unknown>, key)])
    }
  }
  return true
}
