/** Streams as no server should send them, made of lines that a server might. */
import { pick, type Random } from './samples.ts'

const odd: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  0.5,
  1e21,
  'text',
  '',
  ' ',
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
  { text: 'x' },
  { message: 'no', type: 'overloaded_error', code: 429 },
]

/** What `JSON.stringify` does not write. */
const edits: readonly [RegExp, string][] = [
  [/\d+/g, '1e999'],
  [/\d+/g, '-0'],
  [/\d+/g, '01'],
  [/\d+/g, '12345678901234567890'],
  [/"/g, '"\\u0022'],
  [/"/g, '"\\x'],
  [/"(?:delta|text|type|id|candidates)"/g, '"delta":"first","delta"'],
  [/"(?:delta|text|type|id|candidates)"/g, '"":{"delta":"first","text":"first"},"x"'],
  [/"(?:item|content|response)"/g, '"item":null,"item"'],
  [/"type"/g, '"__proto__":{"a":1},"type"'],
  [/"id"/g, '"constructor":{"prototype":1},"id"'],
  [/"type"/g, '"choices":[],"tipe"'],
  [/"type":"/g, '"type":"response.new.'],
  [/:/g, ' :\t'],
  [/,/g, ',,'],
  [/\}/g, '} '],
  [/$/g, '}'],
  [/$/g, '\u0001'],
]

export function mutateStream(lines: readonly string[], other: () => string, random: Random): string[] {
  const made: string[] = []
  // A stream in which everything is wrong tells little.
  const share = pick([0, 0.05, 0.1, 0.3], random)
  for (const line of lines) {
    const act = random()
    if (act < share / 6) continue
    if (act < share / 3) made.push(other())
    if (act < share / 2) made.push(line)
    const told = act < share * 1.5 ? mutateLine(line, random) : line
    made.push(told)
    // Mostly what templates are for.
    if (random() < 0.3) for (let i = random() * 5; i > 0; i--) made.push(retold(told, random))
    if (act > 0.97) made.splice(Math.floor(random() * made.length), 0, line)
  }
  return made
}

function mutateLine(line: string, random: Random): string {
  const act = random()
  if (act < 0.05) return line.slice(0, Math.floor(random() * line.length))
  if (act < 0.25) return edited(line, random)
  const value = mutateValue(JSON.parse(line), random)
  return JSON.stringify(random() < 0.3 ? mutateValue(value, random) : value) ?? 'undefined'
}

function edited(line: string, random: Random): string {
  const [pattern, text] = pick(edits, random)
  const places = [...line.matchAll(pattern)]
  if (places.length === 0) return line
  const { index, 0: found } = pick(places, random)
  return line.slice(0, index) + text + line.slice(index + found.length)
}

function mutateValue(value: unknown, random: Random): unknown {
  if (typeof value !== 'object' || value === null || random() < 0.05) return pick(odd, random)
  const entries = Object.entries(value) as [string, unknown][]
  if (entries.length === 0) return pick(odd, random)
  const at = Math.floor(random() * entries.length)
  const [key, field] = entries[at]!
  const act = random()
  if (act < 0.15) entries.splice(at, 1)
  else if (act < 0.2) entries.push([pick(['type', 'id', 'extra', 'item_id', 'error', key], random), pick(odd, random)])
  else if (act < 0.25) entries.reverse()
  else entries[at] = [key, mutateValue(field, random)]
  return Array.isArray(value) ? entries.map(([, item]) => item) : Object.fromEntries(entries)
}

/** The same but for one string or number, also written as only JSON does it, or as JSON does not. */
function retold(line: string, random: Random): string {
  const tokens = [...line.matchAll(/:\s*(?:"((?:[^"\\]|\\.)*)"|(\d+))/g)]
  if (tokens.length === 0) return line
  const texts = tokens.filter(({ 0: found }) => /"/.test(found))
  const { index, 0: found, 1: text, 2: number } = pick(random() < 0.8 && texts.length > 0 ? texts : tokens, random)
  const end = index + found.length
  if (text === undefined) {
    return (
      line.slice(0, end - number!.length) + pick(['7', '10', '007', '1.5', '1e3', '"7"', ''], random) + line.slice(end)
    )
  }
  const inserted = pick(
    ['a', ' Grüße', '\\n', '\\u00e9', '\\ud83c\\udf0d', '\\x', '', '\\"', '\t', '\u001f', 'x'.repeat(30)],
    random,
  )
  return line.slice(0, end - 1 - (random() < 0.5 ? text.length : 0)) + inserted + line.slice(end - 1)
}
