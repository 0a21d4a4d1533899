/** Reads and sets values in a JSON value by path, never through a prototype. */

export type Path = (string | number)[]
type Members = Record<string | number, unknown>

/** `$.recipe.steps[0]` → `['recipe', 'steps', 0]`. Undefined for the root. */
export function pathOf(jsonPath: string): Path | undefined {
  const raw = jsonPath.replace(/^\$\./, '')
  if (raw === '' || raw === '$') return undefined
  const path: Path = []
  for (const part of raw.split('.')) {
    const bracket = part.indexOf('[')
    if (bracket === -1) path.push(part)
    else {
      if (bracket > 0) path.push(part.slice(0, bracket))
      for (const [, index] of part.matchAll(/\[(\d+)\]/g)) path.push(Number.parseInt(index!, 10))
    }
  }
  return path
}

export function valueAt(root: Members, path: Path): unknown {
  let current: unknown = root
  for (const key of path) {
    if (!hasMember(current, key)) return undefined
    current = current[key]
  }
  return current
}

/** Creates objects and arrays on the way. Throws in a string or a number. */
export function setValue(root: Members, path: Path, value: unknown): void {
  let current = root
  for (let i = 0; i < path.length - 1; i++) {
    const key = path[i]!
    // Throws for what has no members, as the package does.
    if (!Object.prototype.hasOwnProperty.call(current, key) || current[key] === null || current[key] === undefined) {
      define(current, key, typeof path[i + 1] === 'number' ? [] : {})
    }
    current = current[key] as Members
  }
  define(current, path[path.length - 1]!, value)
}

/**
 * Whether each index is that of an element or of the next one: a gap would fill the memory. Turns the names of elements (`items.0`)
 * into indexes.
 */
export function indexesInOrder(root: Members, path: Path): boolean {
  let current: unknown = root
  for (let i = 0; i < path.length; i++) {
    if (Array.isArray(current) && typeof path[i] === 'string') {
      const index = Number(path[i])
      if (Number.isInteger(index) && index >= 0 && index < 2 ** 32 - 1 && String(index) === path[i]) path[i] = index
    }
    const key = path[i]!
    if (typeof key === 'number') {
      const isNone = current === null || current === undefined
      const length = Array.isArray(current) ? current.length : isNone ? 0 : undefined
      if (length !== undefined && key > length) return false
    }
    current = hasMember(current, key) ? current[key] : undefined
  }
  return true
}

function hasMember(value: unknown, key: string | number): value is Members {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
}

/** `__proto__` is a name like any other here. */
function define(value: Members, key: string | number, member: unknown): void {
  Object.defineProperty(value, key, { value: member, enumerable: true, configurable: true, writable: true })
}
