/** Chunks as no server should send them: fields dropped, doubled, moved, of another type, and text that is not JSON. */

/** A small generator with a seed, so that a difference can be repeated. */
export function createRandom(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let x = state
    x = Math.imul(x ^ (x >>> 15), x | 1)
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61)
    return ((x ^ (x >>> 14)) >>> 0) % below
  }
}

type Random = ReturnType<typeof createRandom>

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
  [],
  [null],
  [[]],
  {},
  { type: 'text', text: 'x' },
  { message: 'no', type: 'overloaded_error', code: 429 },
  { message: 'no', type: 'rate_limit_error', code: 'insufficient_quota' },
]

/** Numbers and keys that `JSON.stringify` does not write. */
const raw: readonly [RegExp, string][] = [
  [/\d+/, '1e999'],
  [/\d+/, '-0'],
  [/\d+/, '12345678901234567890'],
  [/"/, '"\\u0022'],
  [/"content"/, '"content":"first","content"'],
  [/"delta"/, '"delta":{"content":"first"},"delta"'],
  [/"type"/, '"__proto__":{"a":1},"type"'],
  [/"id"/, '"constructor":{"prototype":1},"id"'],
  [/:/, ' :\t'],
  [/,/, ',,'],
  [/\}/, '} '],
  [/$/, ' '],
  [/$/, '}'],
  [/$/, '\u0001'],
]

/** `keys`: names of fields that are worth adding or swapping. */
export function mutateLine(line: string, random: Random, keys: readonly string[]): string {
  if (random(8) === 0) return cutOrEdit(line, random)
  const value = JSON.parse(line) as unknown
  const times = 1 + random(2)
  let mutated = value
  for (let i = 0; i < times; i++) mutated = mutateValue(mutated, random, keys)
  return JSON.stringify(mutated)
}

function cutOrEdit(line: string, random: Random): string {
  if (random(3) === 0) return line.slice(0, random(line.length + 1))
  const [pattern, text] = pick(raw, random)
  const places = [...line.matchAll(new RegExp(pattern, 'g'))]
  if (places.length === 0) return line
  const { index, 0: found } = pick(places, random)
  return line.slice(0, index) + text + line.slice(index + found.length)
}

function mutateValue(value: unknown, random: Random, keys: readonly string[]): unknown {
  if (typeof value !== 'object' || value === null || random(12) === 0) {
    if (typeof value === 'string' && random(2) === 0) return mutateText(value, random)
    return random(3) === 0 ? value : pick(odd, random)
  }
  if (Array.isArray(value)) {
    const items: unknown[] = [...(value as unknown[])]
    if (items.length === 0) return [pick(odd, random)]
    const at = random(items.length)
    const act = random(8)
    if (act === 0) items.splice(at, 1)
    else if (act === 1) items.push(items[at])
    else if (act === 2) return items[at]
    else items[at] = mutateValue(items[at], random, keys)
    return items
  }
  const entries = Object.entries(value)
  const act = random(10)
  if (act === 0 || entries.length === 0)
    return Object.fromEntries([...entries, [pick(keys, random), pick(odd, random)]])
  const at = random(entries.length)
  const [key, field] = entries[at]!
  if (act === 1) entries.splice(at, 1)
  else if (act === 2) entries.reverse()
  else if (act === 3) entries[at] = [pick(keys, random), field]
  else if (act === 4) return [value]
  else entries[at] = [key, mutateValue(field, random, keys)]
  return Object.fromEntries(entries)
}

function mutateText(text: string, random: Random): string {
  const at = random(text.length + 1)
  return (
    text.slice(0, at) +
    pick(['', '"', '\\', '\n', 'ü', '{', '}', '世', ' ', '\ud83c', 'x'.repeat(20)], random) +
    text.slice(at)
  )
}

export function pick<T>(list: readonly T[], random: Random): T {
  return list[random(list.length)]!
}

/** A stream of lines: those of the fixtures in a new order, some mutated, some repeated with another text only. */
export function mutateStream(
  lines: readonly string[],
  all: readonly string[],
  random: Random,
  keys: readonly string[],
): string[] {
  const made: string[] = []
  for (const line of lines) {
    const act = random(14)
    if (act === 0) continue
    if (act === 1) made.push(pick(all, random))
    if (act === 2) made.push(line)
    if (act <= 5) made.push(mutateLine(random(3) === 0 ? pick(all, random) : line, random, keys))
    else made.push(line)
    if (act === 6) for (let i = random(6); i > 0; i--) made.push(mutateLine(line, random, keys))
    if (act === 7) for (let i = random(4); i > 0; i--) made.push(otherText(line, random))
  }
  return made
}

/** As most chunks differ: in one string. Also with an escape that is not valid. */
function otherText(line: string, random: Random): string {
  const strings = [...line.matchAll(/:\s*"((?:[^"\\]|\\.)*)"/g)]
  if (strings.length === 0) return line
  const { index, 0: found, 1: text = '' } = pick(strings, random)
  const inserted = pick(
    ['a', 'Grüße', '\\n', '\\u00e9', '\\ud83c\\udf0d', '\\x', '', '\\"', 'x'.repeat(30), '\t'],
    random,
  )
  const at = index + found.length - 1
  return line.slice(0, random(2) === 0 ? at : at - text.length) + inserted + line.slice(at)
}
