/** Invalid streams, made from lines that a server might send. */
import { below, pick, type Random } from './random.ts'

const odd: readonly unknown[] = [
  null,
  true,
  false,
  0,
  1,
  -1,
  0.5,
  1e21,
  'text',
  '',
  ' ',
  '0',
  '🌍 \u2028 \ud800',
  'a"b\\c\n',
  '\u0000',
  '__proto__',
  'constructor',
  [],
  [null],
  [[]],
  {},
  { type: 'message' },
  { type: 'text', text: 'x' },
  { message: 'no', type: 'overloaded_error', code: 429 },
  { message: 'no', type: 'rate_limit_error', code: 'insufficient_quota' },
]

/** Forms that `JSON.stringify` does not produce. */
const edits: readonly [RegExp, string][] = [
  [/\d+/g, '1e999'],
  [/\d+/g, '-0'],
  [/\d+/g, '01'],
  [/\d+/g, '12345678901234567890'],
  [/"/g, '"\\u0022'],
  [/"/g, '"\\x'],
  [/"(?:content|delta|text|type|id|candidates)"/g, '"delta":"first","delta"'],
  [/"(?:content|delta|text|type|id|candidates)"/g, '"":{"delta":"first","text":"first"},"x"'],
  [/"(?:content|delta|text)"/g, '"content":"first","content"'],
  [/"delta"/g, '"delta":{"content":"first"},"delta"'],
  [/"delta":\{/g, '"delta":{"text":"first",'],
  [/"(?:item|content|response)"/g, '"item":null,"item"'],
  [/"type"/g, '"__proto__":{"a":1},"type"'],
  [/"id"/g, '"constructor":{"prototype":1},"id"'],
  [/"type"/g, '"choices":[],"tipe"'],
  [/"type":"/g, '"type":"response.new.'],
  [/:/g, ' :\t'],
  [/,/g, ',,'],
  [/\}/g, '} '],
  [/$/g, ' '],
  [/$/g, '}'],
  [/$/g, '\u0001'],
]

/** `other`: a line of the same protocol. */
export function mutateStream(lines: readonly string[], other: () => string, random: Random): string[] {
  const made: string[] = []
  // A stream with only errors is a weak test.
  const share = pick([0, 0.05, 0.1, 0.3], random)
  for (const line of lines) {
    const act = random()
    if (act < share / 6) continue
    if (act < share / 3) made.push(other())
    if (act < share / 2) made.push(line)
    const told = act < share * 1.5 ? mutateLine(line, other, random) : line
    made.push(told)
    // Mostly events like templates.
    if (random() < 0.3) for (let i = below(5, random); i > 0; i--) made.push(retold(told, random))
    if (act > 0.97) made.splice(below(made.length, random), 0, line)
  }
  return made
}

function mutateLine(line: string, other: () => string, random: Random): string {
  const act = random()
  if (act < 0.05) return line.slice(0, below(line.length, random))
  if (act < 0.25) return edited(line, random)
  const keys = [...other().matchAll(/"(\w+)":/g)].map(([, key]) => key!)
  const value = mutateValue(JSON.parse(line), keys, random)
  return JSON.stringify(random() < 0.3 ? mutateValue(value, keys, random) : value) ?? 'undefined'
}

function edited(line: string, random: Random): string {
  const [pattern, text] = pick(edits, random)
  const places = [...line.matchAll(pattern)]
  if (places.length === 0) return line
  const { index, 0: found } = pick(places, random)
  return line.slice(0, index) + text + line.slice(index + found.length)
}

/** `keys`: field names of other lines, to add or swap. */
function mutateValue(value: unknown, keys: readonly string[], random: Random): unknown {
  if (typeof value === 'string' && random() < 0.3) return mutateText(value, random)
  if (typeof value !== 'object' || value === null || random() < 0.05) return pick(odd, random)
  const entries = Object.entries(value) as [string, unknown][]
  if (entries.length === 0) return Array.isArray(value) ? [pick(odd, random)] : pick(odd, random)
  const at = below(entries.length, random)
  const [key, field] = entries[at]!
  const named = pick(['type', 'id', 'extra', 'error', '__proto__', 'toString', ...keys], random)
  const act = random()
  if (act < 0.15) entries.splice(at, 1)
  else if (act < 0.2) entries.push([named, random() < 0.5 ? field : pick(odd, random)])
  else if (act < 0.25) entries.reverse()
  else if (act < 0.3) entries[at] = [named, field]
  else if (act < 0.33) return Array.isArray(value) ? field : [value]
  else entries[at] = [key, mutateValue(field, keys, random)]
  return Array.isArray(value) ? entries.map(([, item]) => item) : Object.fromEntries(entries)
}

function mutateText(text: string, random: Random): string {
  const at = below(text.length + 1, random)
  const inserted = pick(['"', '\\', '\n', 'ü', '{', '}', '世', ' ', '\ud83c', 'x'.repeat(20)], random)
  return text.slice(0, at) + inserted + text.slice(at)
}

/** Changes one string or number, also to forms that only JSON allows, or that JSON forbids. */
function retold(line: string, random: Random): string {
  const tokens = [...line.matchAll(/:\s*(?:"((?:[^"\\]|\\.)*)"|(\d+))/g)]
  if (tokens.length === 0) return line
  const texts = tokens.filter(({ 0: found }) => /"/.test(found))
  const { index, 0: found, 1: text, 2: number } = pick(random() < 0.8 && texts.length > 0 ? texts : tokens, random)
  const end = index + found.length
  if (text === undefined) {
    const other = pick(['7', '10', '007', '1.5', '1e3', '"7"', ''], random)
    return line.slice(0, end - number!.length) + other + line.slice(end)
  }
  const inserted = pick(
    ['a', ' Grüße', '\\n', '\\u00e9', '\\ud83c\\udf0d', '\\x', '', '\\"', '\t', '\u001f', 'x'.repeat(30)],
    random,
  )
  return line.slice(0, end - 1 - (random() < 0.5 ? text.length : 0)) + inserted + line.slice(end - 1)
}
