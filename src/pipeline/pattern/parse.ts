/**
 * Parses a regular expression to a tree for `program.ts`. Characters and classes mean the same as in JavaScript: each becomes
 * a `RegExp` that tests one character. Syntax that cannot be matched in linear time is rejected.
 */

export type PatternNode =
  | { type: 'char'; accepts(char: string): boolean }
  | { type: 'assert'; kind: Assertion }
  | { type: 'sequence' | 'choice'; items: PatternNode[] }
  | { type: 'repeat'; item: PatternNode; min: number; max: number }

/** `^`, `$`, `\b` and `\B`. */
export type Assertion = 'start' | 'end' | 'boundary' | 'inside'

/** The message continues a sentence: `uses a lookahead, which is not supported`. */
export class PatternError extends Error {
  override readonly name = 'PatternError'
}

const longest = 10_000
const deepest = 100

/** Throws {@link PatternError}. `isLenient` also accepts syntax that JavaScript allows only without the flag `u`. */
export function parsePattern(source: string, isLenient: boolean): PatternNode {
  if (source.length > longest) throw new PatternError(`is longer than ${longest} characters`)
  const flags = flagsOf(source, isLenient)
  const chars = Array.from(source)
  let at = 0

  function choice(depth: number): PatternNode {
    if (depth > deepest) throw new PatternError(`is nested more than ${deepest} levels deep`)
    const items = [sequence(depth)]
    while (chars[at] === '|') {
      at += 1
      items.push(sequence(depth))
    }
    return items.length === 1 ? items[0]! : { type: 'choice', items }
  }

  function sequence(depth: number): PatternNode {
    const items: PatternNode[] = []
    while (at < chars.length && chars[at] !== '|' && chars[at] !== ')') items.push(repeated(term(depth)))
    return items.length === 1 ? items[0]! : { type: 'sequence', items }
  }

  function term(depth: number): PatternNode {
    const char = chars[at]!
    if (char === '^' || char === '$') {
      at += 1
      return { type: 'assert', kind: char === '^' ? 'start' : 'end' }
    }
    if (char === '(') return group(depth)
    if (char === '[') return oneOf(classText())
    if (char === '\\') return escape()
    at += 1
    return char === '.' ? oneOf('.') : { type: 'char', accepts: (other) => other === char }
  }

  function group(depth: number): PatternNode {
    at += 1
    if (chars[at] === '?') {
      const kind = chars.slice(at, at + 3).join('')
      if (/^\?[=!]/u.test(kind)) throw unsupported('a lookahead')
      if (/^\?<[=!]/u.test(kind)) throw unsupported('a lookbehind')
      if (kind.startsWith('?<')) at = chars.indexOf('>', at) + 1
      else if (kind.startsWith('?:')) at += 2
      else throw unsupported('a flag inside a group')
    }
    const inner = choice(depth + 1)
    at += 1
    return inner
  }

  function classText(): string {
    const from = at
    for (at += 1; chars[at] !== ']'; at++) if (chars[at] === '\\') at += 1
    at += 1
    return chars.slice(from, at).join('')
  }

  function escape(): PatternNode {
    const rest = chars.slice(at, at + 80).join('')
    const next = chars[at + 1]!
    if (next === 'b' || next === 'B') {
      at += 2
      return { type: 'assert', kind: next === 'b' ? 'boundary' : 'inside' }
    }
    if (/^\\(?:[1-9]|0\d|k)/u.test(rest)) throw unsupported('a back-reference')
    const long = flags === 'u' ? withUnicode : withoutUnicode
    const text = long.exec(rest)?.[0] ?? `\\${next}`
    at += Array.from(text).length
    return oneOf(text)
  }

  function repeated(item: PatternNode): PatternNode {
    const quantifier = /^(?:[*+?]|\{(\d+)(?:,(\d*))?\})\??/u.exec(chars.slice(at, at + 40).join(''))
    if (quantifier === null) return item
    at += quantifier[0].length
    const [text, least, most] = quantifier
    if (text.startsWith('*')) return { type: 'repeat', item, min: 0, max: Infinity }
    if (text.startsWith('+')) return { type: 'repeat', item, min: 1, max: Infinity }
    if (text.startsWith('?')) return { type: 'repeat', item, min: 0, max: 1 }
    return {
      type: 'repeat',
      item,
      min: Number(least),
      max: most === undefined ? Number(least) : most === '' ? Infinity : Number(most),
    }
  }

  /** The flags determine the meaning of `\u{1F600}` and `\p{L}`. */
  function oneOf(text: string): PatternNode {
    const one = new RegExp(`^${text}$`, flags)
    return { type: 'char', accepts: (char) => one.test(char) }
  }

  return choice(0)
}

const withUnicode =
  /^\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[A-Za-z])/u
const withoutUnicode = /^\\(?:u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[A-Za-z])/u

function flagsOf(source: string, isLenient: boolean): string {
  for (const flags of isLenient ? ['u', ''] : ['u']) {
    try {
      new RegExp(source, flags)
      return flags
    } catch {
      // Try the next flags.
    }
  }
  throw new PatternError('is not a valid regular expression')
}

function unsupported(what: string): PatternError {
  return new PatternError(`uses ${what}, which is not supported`)
}
