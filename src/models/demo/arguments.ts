/** Builds tool arguments from the words of a request and the tool's JSON Schema, by pattern matching. */
import { ownValue } from '../../part/own-value.ts'

import { parseJson } from '../../part/json.ts'

export type Schema = Record<string, unknown>

/** `words`: the text about this call. Fills every property that the schema requires, unless the text itself holds JSON. */
export function argumentsFrom(schema: Schema, words: string): unknown {
  const given = jsonIn(words)
  if (given !== undefined) return given
  return valueOf(schema, '', createSource(words), schema, 0) ?? {}
}

/** Values found in the words. Each is used once. */
interface Source {
  words: string
  quoted: string[]
  numbers: number[]
  names: string[]
}

function createSource(words: string): Source {
  const quoted = [...words.matchAll(/"([^"]+)"|“([^”]+)”|(?<!\w)'([^']+)'(?!\w)/g)].map((m) => (m[1] ?? m[2] ?? m[3])!)
  const names = [
    ...words.matchAll(/\b(?:in|for|of|at|about|to|from|named|called|with|and)\s+(\p{Lu}[\w-]*(?: \p{Lu}[\w-]*)*)/gu),
  ]
  return {
    words,
    quoted,
    numbers: [...words.matchAll(/(?<![\w.])-?\d+(?:\.\d+)?(?!\w)/g)].map((m) => Number(m[0])),
    names: names.map((m) => m[1]!),
  }
}

function valueOf(schema: Schema, name: string, source: Source, root: Schema, depth: number): unknown {
  const is = resolve(schema, root)
  if (depth > 6) return null
  if ('const' in is) return is['const']
  const said = saidAs(name, source.words)
  if (Array.isArray(is['enum'])) {
    const options = is['enum'] as unknown[]
    return (
      options.find((option) => said === String(option)) ??
      options.find((o) => hasWord(source.words, String(o))) ??
      options[0]
    )
  }
  switch (typeOf(is)) {
    case 'object':
      return objectOf(is, source, root, depth)
    case 'array': {
      const least = Math.max(1, Number(is['minItems'] ?? 1))
      const items = (is['items'] ?? {}) as Schema
      return Array.from({ length: Math.min(least, 20) }, () => valueOf(items, name, source, root, depth + 1))
    }
    case 'number':
    case 'integer': {
      const number = said === undefined || Number.isNaN(Number(said)) ? source.numbers.shift() : Number(said)
      const value = number ?? is['default'] ?? is['minimum'] ?? 1
      return typeOf(is) === 'integer' ? Math.trunc(Number(value)) : value
    }
    case 'boolean':
      return said === undefined ? (is['default'] ?? true) : !/^(false|no|off|0)$/i.test(said)
    case 'null':
      return null
    default:
      return said ?? textFor(name, is, source)
  }
}

function objectOf(is: Schema, source: Source, root: Schema, depth: number): Schema {
  const required = new Set(Array.isArray(is['required']) ? (is['required'] as string[]) : [])
  const value = new Map<string, unknown>()
  for (const [name, property] of Object.entries((is['properties'] ?? {}) as Record<string, Schema>)) {
    if (!required.has(name) && !isSaid(name, resolve(property, root), source)) continue
    value.set(name, valueOf(property, name, source, root, depth + 1))
  }
  return Object.fromEntries(value)
}

/** An optional property is filled only if the words mention it. */
function isSaid(name: string, is: Schema, { words }: Source): boolean {
  if (name === 'timeZone') return timeZoneIn(words) !== undefined
  if (Array.isArray(is['enum'])) return is['enum'].some((option) => hasWord(words, String(option)))
  return saidAs(name, words) !== undefined
}

function textFor(name: string, is: Schema, source: Source): string {
  const { words, quoted, names } = source
  if (name === 'timeZone') return timeZoneIn(words) ?? 'UTC'
  if (name === 'expression') return expressionsIn(words)[0] ?? quoted.shift() ?? words
  switch (is['format']) {
    case 'date-time':
      return /\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)/.exec(words)?.[0] ?? '2026-01-01T00:00:00Z'
    case 'date':
      return /\d{4}-\d\d-\d\d/.exec(words)?.[0] ?? '2026-01-01'
    case 'email':
      return /[\w.+-]+@[\w-]+\.[\w.]+\w/.exec(words)?.[0] ?? 'demo@example.com'
    case 'uri':
      return /https?:\/\/[^\s"')]+/.exec(words)?.[0] ?? 'https://example.com/'
    default: {
      const preset = typeof is['default'] === 'string' ? is['default'] : undefined
      const text = quoted.shift() ?? names.shift() ?? preset ?? rest(words)
      return text.slice(0, Number(is['maxLength'] ?? 1000)) || 'demo'
    }
  }
}

/** `city=Paris`, `city: "New York"`, `city is Paris` → the value. */
function saidAs(name: string, words: string): string | undefined {
  if (name === '') return undefined
  const key = name.replace(/[^\w-]/g, '\\$&')
  const match = new RegExp(
    `(?<![\\w-])${key}\\s*(?:=|:|\\bis\\b|\\bset to\\b)\\s*(?:"([^"]*)"|'([^']*)'|([^\\s,;]+))`,
    'i',
  ).exec(words)
  return match?.[1] ?? match?.[2] ?? match?.[3]?.replace(/[.!?]+$/, '')
}

/** The words without the filler of a request to use a tool. */
function rest(words: string): string {
  return words
    .replace(/^\W*(?:please\s+)?(?:(?:to|with|for|and|on|about)\s+)*/i, '')
    .replace(/[\s.!?]+$|\s+and(?:\s+the(?:\s+tool)?)?$/gi, '')
}

function resolve(schema: Schema, root: Schema, depth = 0): Schema {
  if (depth > 10) return {}
  const reference = schema['$ref']
  if (typeof reference === 'string') {
    let at: unknown = root
    for (const key of reference.replace(/^#\/?/, '').split('/').filter(Boolean)) {
      at = typeof at === 'object' && at !== null ? ownValue(at as Schema, key) : undefined
    }
    return resolve((at ?? {}) as Schema, root, depth + 1)
  }
  const choices = (schema['anyOf'] ?? schema['oneOf']) as Schema[] | undefined
  const choice = choices?.find((option) => option['type'] !== 'null') ?? choices?.[0]
  if (choice) return resolve(choice, root, depth + 1)
  const all = schema['allOf'] as Schema[] | undefined
  return all ? Object.assign({}, schema, ...all.map((part) => resolve(part, root, depth + 1))) : schema
}

function typeOf({ type, properties, items }: Schema): unknown {
  if (Array.isArray(type)) return type.find((one) => one !== 'null')
  if (type !== undefined) return type
  if (properties !== undefined) return 'object'
  return items === undefined ? undefined : 'array'
}

function jsonIn(words: string): unknown {
  const start = words.indexOf('{')
  const end = words.lastIndexOf('}')
  if (start < 0 || end < start) return undefined
  try {
    return parseJson(words.slice(start, end + 1))
  } catch {
    // Not JSON: treat it as ordinary text.
    return undefined
  }
}

export function hasWord(words: string, word: string): boolean {
  return wordAt(words, word).length > 0
}

/** Positions of a name as a whole word: `get_time` does not match within `get_time_zone`. */
export function wordAt(words: string, word: string): number[] {
  const key = word.replace(/[^\w\s]/g, '\\$&')
  return [...words.matchAll(new RegExp(`(?<![\\w-])${key}(?![\\w]|-\\w)`, 'gi'))].map(({ index }) => index)
}

/** Arithmetic in the words: `12*7`, `sqrt(16) + 2`, `3 times 4`. ISO dates are skipped. */
export function expressionsIn(words: string): string[] {
  const spoken = words
    .replace(/\d{4}-\d\d-\d\d\S*/g, ' ')
    .replace(/(?<=\d\s*)\b(?:times|multiplied by)\b(?=\s*[\d(-])/gi, '*')
    .replace(/(?<=\d\s*)\bdivided by\b(?=\s*[\d(-])/gi, '/')
    .replace(/(?<=\d\s*)\bplus\b(?=\s*[\d(-])/gi, '+')
    .replace(/(?<=\d\s*)\bminus\b(?=\s*[\d(-])/gi, '-')
    .replaceAll('×', '*')
    .replaceAll('÷', '/')
    .replaceAll('−', '-')
  const runs =
    spoken.match(
      /(?<!\w)(?:(?:sqrt|abs|sin|cos|tan|log|exp|round|floor|ceil|min|max|pow|mod)(?=\()|\d+(?:\.\d+)?(?!\w)|[-+*/^%(),]|\s+)+/g,
    ) ?? []
  return runs
    .map((run) => balanced(run.trim().replace(/^[,*/^%+)\s]+|[-,*/^%+(\s]+$/g, '')))
    .filter((run) => /\d/.test(run) && /\d\s*\)*\s*[-+*/^%]|[a-z]\(/.test(run))
}

// "(see 12*7)" leaves an unbalanced bracket.
function balanced(run: string): string {
  const open = run.split('(').length - run.split(')').length
  if (open > 0 && run.startsWith('(')) return run.slice(open)
  return open < 0 ? run.slice(0, open) : run
}

let zones: string[] | undefined

/** `Asia/Tokyo`, `UTC`, or the zone of a city: "in New York" → `America/New_York`. */
export function timeZoneIn(words: string): string | undefined {
  zones ??= Intl.supportedValuesOf('timeZone')
  return (
    zones.find((zone) => words.includes(zone)) ??
    (hasWord(words, 'UTC') || hasWord(words, 'GMT') ? 'UTC' : cityZone(words))
  )
}

function cityZone(words: string): string | undefined {
  return zones!.find(
    (zone) => zone.includes('/') && hasWord(words, zone.slice(zone.lastIndexOf('/') + 1).replaceAll('_', ' ')),
  )
}
