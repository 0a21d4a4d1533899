/** The shape of a JSON value in a few words, for a model that sees only its beginning: `{orders: [1200 × {id: number, lines: […]}], total: number}`. */

const deepest = 6
const mostKeys = 20
const mostCharacters = 600

export function shapeOf(value: unknown): string {
  const text = shapeAt(value, 0)
  return text.length <= mostCharacters ? text : `${text.slice(0, mostCharacters - 1)}…`
}

function shapeAt(value: unknown, depth: number): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]'
    if (depth >= deepest) return `[${value.length} × …]`
    return `[${value.length} × ${shapeAt(value[0], depth + 1)}]`
  }
  if (typeof value !== 'object') return typeof value
  const keys = Object.keys(value)
  if (keys.length === 0) return '{}'
  if (depth >= deepest) return '{…}'
  const shown = keys
    .slice(0, mostKeys)
    .map((key) => `${nameOf(key)}: ${shapeAt((value as Record<string, unknown>)[key], depth + 1)}`)
  const more = keys.length > mostKeys ? [`… ${keys.length - mostKeys} more keys`] : []
  return `{${[...shown, ...more].join(', ')}}`
}

function nameOf(key: string): string {
  const text = key.length > 60 ? `${key.slice(0, 60)}…` : key
  return /^[A-Za-z_$][\w$-]*$/u.test(text) ? text : JSON.stringify(text)
}
