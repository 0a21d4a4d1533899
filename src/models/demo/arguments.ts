/** Values for tool arguments and JSON output: the shape comes from a JSON Schema, the contents from the words of a request. */
import { parseJson } from '../../part/json.ts'
import { ownValue } from '../../part/own-value.ts'

export type Schema = Record<string, unknown>

/** Words, and what was found in them; each find is used once. */
interface Source {
  words: string
  texts: string[]
  numbers: number[]
  root: Schema
}

/** The JSON in the words if there is some. Otherwise every required property gets a value. */
export function argumentsFrom(schema: Schema, words: string): unknown {
  try {
    return parseJson(/\{[^]*\}/.exec(words)?.[0] ?? '')
  } catch {
    // No JSON: its values are looked for in the words.
  }
  const quoted = [...words.matchAll(/"([^"]+)"|“([^”]+)”|(?<!\w)'([^']+)'(?!\w)/g)].map((m) => m[1] ?? m[2] ?? m[3]!)
  const named = [...words.matchAll(/\b(?:in|for|of|at|about|to|from|with|and) (\p{Lu}[\w-]*(?: \p{Lu}[\w-]*)*)/gu)]
  const numbers = words.match(/(?<![\w.])-?\d+(?:\.\d+)?(?!\w)/g) ?? []
  const texts = [...quoted, ...named.map((match) => match[1]!)]
  return valueOf('', schema, { words, texts, numbers: numbers.map(Number), root: schema }) ?? {}
}

function valueOf(name: string, schema: Schema, source: Source, depth = 0): unknown {
  const is = resolved(schema, source.root)
  if (depth > 6) return null
  if ('const' in is) return is['const']
  const said = saidAs(name, source.words)
  if (Array.isArray(is['enum'])) {
    const options = is['enum'] as unknown[]
    return options.find((one) => String(one) === said) ?? options.find((one) => isIn(source.words, one)) ?? options[0]
  }
  const bound = (key: string, otherwise: number) => Number(ownValue(is, key) ?? otherwise)
  switch (typeOf(is)) {
    case 'object': {
      const required = (is['required'] ?? []) as string[]
      const properties = Object.entries((is['properties'] ?? {}) as Record<string, Schema>)
      const filled = properties.filter(([key, each]) => required.includes(key) || isSaid(key, each, source))
      return Object.fromEntries(filled.map(([key, each]) => [key, valueOf(key, each, source, depth + 1)]))
    }
    case 'array':
      return Array.from({ length: Math.min(20, Math.max(1, bound('minItems', 1))) }, () =>
        valueOf(name, (is['items'] ?? {}) as Schema, source, depth + 1),
      )
    case 'number':
    case 'integer': {
      const given = Number(said ?? NaN)
      const value = Number.isNaN(given) ? (source.numbers.shift() ?? bound('default', bound('minimum', 1))) : given
      const within = Math.max(bound('minimum', value), Math.min(bound('maximum', value), value))
      return typeOf(is) === 'integer' ? Math.trunc(within) : within
    }
    case 'boolean':
      return said === undefined ? (is['default'] ?? true) : !/^(false|no|off|0)$/i.test(said)
    case 'null':
      return null
    default:
      return said ?? textFor(name, is, source)
  }
}

/** Texts with a form of their own: how they look, and what stands in for them. */
const forms: Readonly<Record<string, readonly [RegExp, string]>> = {
  'date-time': [/\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)/, '2026-01-01T00:00:00Z'],
  date: [/\d{4}-\d\d-\d\d/, '2026-01-01'],
  email: [/[\w.+-]+@[\w-]+\.[\w.]+\w/, 'demo@example.com'],
  uri: [/https?:\/\/[^\s"')]+/, 'https://example.com/'],
}

const advice = [
  'Say what only this one can say.',
  'Leave out every word that is not needed.',
  'End on the strongest word.',
]

function textFor(name: string, is: Schema, { words, texts, numbers }: Source): string {
  const [form, example] = ownValue(forms, String(is['format'])) ?? []
  if (form !== undefined) return form.exec(words)?.[0] ?? example!
  if (name === 'timeZone') return timeZoneIn(words) ?? 'UTC'
  if (name === 'expression') return expressionsIn(words)[0] ?? texts.shift() ?? words
  // For a critic: another one for each number of a draft.
  if (name === 'advice') return advice[Math.abs(Math.trunc(numbers[0] ?? 0)) % 3]!
  const rest = words.replace(/^\W*(?:(?:to|with|for|and|on|about)\s+)*|[\s.!?]+$/gi, '')
  const text = texts.shift() ?? (typeof is['default'] === 'string' ? is['default'] : rest)
  return text.slice(0, Number(is['maxLength'] ?? 1000)) || 'demo'
}

/** An optional property is filled only if the words mention it. */
function isSaid(name: string, is: Schema, { words }: Source): boolean {
  if (name === 'timeZone') return timeZoneIn(words) !== undefined
  return saidAs(name, words) !== undefined || ((is['enum'] ?? []) as unknown[]).some((option) => isIn(words, option))
}

/** `city=Paris`, `city: "New York"` → the value. */
function saidAs(name: string, words: string): string | undefined {
  if (name === '') return undefined
  const [, quoted, bare] =
    new RegExp(`${wordPattern(name)}\\s*[=:]\\s*(?:"([^"]*)"|([^\\s,;)]+))`, 'i').exec(words) ?? []
  return quoted ?? bare?.replace(/[.!?]+$/, '')
}

function resolved(schema: Schema, root: Schema, depth = 0): Schema {
  const reference = /^#\/(\$defs|definitions)\/(.+)$/.exec(String(schema['$ref']))
  const target = reference && ownValue((ownValue(root, reference[1]!) ?? {}) as Record<string, Schema>, reference[2]!)
  const choices = (schema['anyOf'] ?? schema['oneOf'] ?? schema['allOf'] ?? []) as Schema[]
  const next = target ?? choices.find(({ type }) => type !== 'null')
  return next === undefined || depth > 10 ? schema : resolved(next, root, depth + 1)
}

function typeOf({ type, properties, items }: Schema): unknown {
  if (Array.isArray(type)) return type.find((one) => one !== 'null')
  return type ?? (properties !== undefined ? 'object' : items !== undefined ? 'array' : undefined)
}

/** As a whole word: `get_time` is not in `get_time_zone`. */
export function wordPattern(word: string): string {
  return `(?<![\\w-])${word.replace(/[^\w\s]/g, '\\$&')}(?!\\w|-\\w)`
}

function isIn(words: string, word: unknown): boolean {
  return new RegExp(wordPattern(String(word)), 'i').test(words)
}

const operators: ReadonlyMap<string, string> = new Map(
  Object.entries({ times: '*', plus: '+', minus: '-', '×': '*', '÷': '/', '−': '-' }),
)
const number = String.raw`(?:-?(?:sqrt|abs|round|floor|ceil|sin|cos|tan|log|exp)?\()*-?\d+(?:\.\d+)?(?:\s*\))*`
const expression = new RegExp(`(?<![\\w.])${number}(?:\\s*[-+*/^%]\\s*${number})*(?!\\w)`, 'g')

/** `12*7`, `sqrt(16) + 2`, `3 times 4`. Dates are none. */
export function expressionsIn(words: string): string[] {
  const plain = words
    .replace(/\d{4}-\d\d-\d\d\S*/g, ' ')
    .replace(/(?<=\d ?)(?:times|plus|minus|[×÷−])(?= ?[\d(-])/gi, (word) => operators.get(word.toLowerCase())!)
  return (plain.match(expression) ?? []).filter(
    (run) => /[\d)]\s*[-+*/^%]|[a-z]\(/.test(run) && run.split('(').length === run.split(')').length,
  )
}

/** `Asia/Tokyo`, or the zone that is named after a city in the words. */
function timeZoneIn(words: string): string | undefined {
  const zones = [...Intl.supportedValuesOf('timeZone'), 'UTC']
  return (
    zones.find((zone) => words.includes(zone)) ??
    zones.find((zone) => isIn(words, zone.slice(zone.lastIndexOf('/') + 1).replaceAll('_', ' ')))
  )
}
