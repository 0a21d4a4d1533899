/** Any value as JSON can hold it: what a tool, a step or a client hands over must not take a run down with it. */

/**
 * BigInt becomes text, an Error `{name, message}`, Map and Set their entries, a cycle `[circular]`, what JSON leaves out is
 * left out; `undefined` when nothing is left. Plain JSON values come back as equal copies. Never throws.
 */
export function toJson(value: unknown): unknown {
  try {
    const copy = copyPlain(value, deepest)
    return copy === other ? rewrite(value) : copy
  } catch (error) {
    return `[not JSON: ${error instanceof Error ? error.message : String(error)}]`
  }
}

const other = Symbol()
const deepest = 100

/** Nearly every value is plain JSON: a copy costs a quarter of writing it and reading it again. `other`: it is not plain. */
function copyPlain(value: unknown, depth: number): unknown {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value
  // JSON has no negative zero.
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : other
  if (typeof value !== 'object' || depth === 0 || 'toJSON' in value) return other
  if (Array.isArray(value)) {
    const copy: unknown[] = []
    for (const item of value as unknown[]) {
      const copied = copyPlain(item, depth - 1)
      if (copied === other) return other
      copy.push(copied)
    }
    return copy
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return other
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    const copied = copyPlain((value as Record<string, unknown>)[key], depth - 1)
    // As an assignment that key would change the prototype.
    if (copied === other || key === '__proto__') return other
    copy[key] = copied
  }
  return copy
}

function rewrite(value: unknown): unknown {
  const above: unknown[] = []
  const text = JSON.stringify(value, function (this: unknown, key, item: unknown) {
    if (typeof item === 'bigint') return item.toString()
    if (typeof item !== 'object' || item === null) return item
    // An error's own `toJSON` may say all of its fields, a request's headers among them.
    const given = (this as Record<string, unknown>)[key]
    if (given instanceof Error) return toPlain(given)
    // `this` holds the item: what lies above it on the way down is what a cycle would return to.
    while (above.length > 0 && above.at(-1) !== this) above.pop()
    if (above.includes(item)) return '[circular]'
    const plain = toPlain(item)
    above.push(plain)
    return plain
  }) as string | undefined
  return text === undefined ? undefined : (JSON.parse(text) as unknown)
}

function toPlain(item: object): object {
  if (item instanceof Error) return { name: item.name, message: item.message }
  if (item instanceof Map) return Object.fromEntries(item)
  if (item instanceof Set) return [...item]
  return item
}
