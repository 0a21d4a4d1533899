/** Any value as JSON can hold it: what a tool, a step or a client hands over must not take a run down with it. */

/**
 * BigInt becomes text, an Error `{name, message}`, Map and Set their entries, a cycle `[circular]`, what JSON leaves out is
 * left out; `undefined` when nothing is left. Plain JSON values come back as equal copies. Never throws.
 */
export function toJson(value: unknown): unknown {
  const above: unknown[] = []
  try {
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
  } catch (error) {
    return `[not JSON: ${error instanceof Error ? error.message : String(error)}]`
  }
}

function toPlain(item: object): object {
  if (item instanceof Error) return { name: item.name, message: item.message }
  if (item instanceof Map) return Object.fromEntries(item)
  if (item instanceof Set) return [...item]
  return item
}
