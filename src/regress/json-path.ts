/** Paths into JSON values: `items[0].price`, `$`, `["a key"]`. */
import { ownValue } from '../part/own-value.ts'

const step = /^(?:\.?([^.[\]"]+)|\[(\d+)\]|\["([^"]*)"\])/u

function keysOf(path: string): (string | number)[] | undefined {
  let rest = path === '$' ? '' : path.replace(/^\$(?=[.[])/u, '')
  const keys: (string | number)[] = []
  if (rest === '' && path !== '$') return undefined
  while (rest !== '') {
    const [whole, name, index, quoted] = step.exec(rest) ?? []
    if (whole === undefined) return undefined
    keys.push(index === undefined ? (name ?? quoted!) : Number(index))
    rest = rest.slice(whole.length)
  }
  return keys
}

export function isPath(path: string): boolean {
  return keysOf(path) !== undefined
}

/** The value at a path; undefined if there is none. `items.0` is the same as `items[0]`. */
export function valueAt(value: unknown, path: string): unknown {
  let at = value
  for (const key of keysOf(path) ?? []) {
    if (Array.isArray(at)) at = (at as unknown[])[Number(key)]
    else at = typeof at === 'object' && at !== null ? ownValue(at as Record<string, unknown>, String(key)) : undefined
  }
  return at
}
