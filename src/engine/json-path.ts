/** A path into a JSON value, as models write them: `orders[3].lines`, `orders.3`, `$.a["b c"]`. No filters, no wildcards. */
import { listNames } from '../pipeline/nearest.ts'

const token = /\.?([^.[\]"']+)|\[\s*(?:(-?\d+)|"((?:[^"\\]|\\.)*)"|'([^']*)')\s*\]/uy

/** `fault`: a sentence that says how far the path leads, and what there is. */
export function valueAt(json: unknown, path: string): { value: unknown } | { fault: string } {
  const keys = parsePath(path)
  if (keys === undefined) return { fault: 'it is no path such as orders[3].lines.' }
  let value = json
  let walked = ''
  for (const key of keys) {
    const place = walked === '' ? 'it' : `"${walked}"`
    if (Array.isArray(value)) {
      const index = /^-?\d+$/u.test(key) ? Number(key) : undefined
      const length = value.length
      if (index === undefined || index >= length || index < -length) {
        return { fault: `${place} is a list of ${length}${length === 0 ? '' : `, from [0] to [${length - 1}]`}.` }
      }
      value = value.at(index)
      walked += `[${key}]`
    } else if (typeof value === 'object' && value !== null) {
      if (!Object.hasOwn(value, key)) {
        return { fault: `${place} has the keys ${listNames(Object.keys(value))}.` }
      }
      value = (value as Record<string, unknown>)[key]
      walked += walked === '' ? key : `.${key}`
    } else return { fault: `${place} is ${value === null ? 'null' : `a ${typeof value}`}, with nothing inside.` }
  }
  return { value }
}

function parsePath(path: string): string[] | undefined {
  const text = path.trim().replace(/^\$/u, '')
  const keys: string[] = []
  token.lastIndex = 0
  while (token.lastIndex < text.length) {
    const match = token.exec(text)
    if (match === null) return undefined
    const [, name, index, quoted, single] = match
    keys.push(name ?? index ?? single ?? quoted!.replaceAll(/\\(.)/gu, '$1'))
  }
  return keys
}
