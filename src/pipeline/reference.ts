/**
 * The syntax of `$` in strings: `$name.path.0` is a reference, `$$` is a dollar sign, any other `$` is literal.
 *
 * A name starts with a letter or `_`, followed by letters, digits, `_` and inner hyphens. A dot belongs to the path only if a
 * name or an index follows. So `$100`, `costs $5` and the full stop in `Hello $input.name.` are plain text.
 */
export interface Reference {
  /** As written, without `?`: `$input.user.name`. */
  text: string
  /** `['input', 'user', 'name']`. */
  path: [string, ...string[]]
  /** Written with `?`: the value may be missing. */
  optional: boolean
}

const name = String.raw`\w+(?:-+\w+)*`
const one = String.raw`\$(?!\d)(${name}(?:\.${name})*)(\?)?`
const reference = new RegExp(String.raw`\$\$|${one}`, 'g')
const referenceHere = new RegExp(one, 'y')

/**
 * Splits a string into literal pieces and references, in order. In a longer string, a `?` at the end of a word is also
 * punctuation: `Who is $input.name?` keeps it if the name has a value. The reference then has it as `suffix`.
 */
export function splitReferences(text: string): (string | (Reference & { suffix: string }))[] {
  if (!text.includes('$')) return [text]
  const pieces: (string | (Reference & { suffix: string }))[] = []
  let literal = ''
  let end = 0
  for (const match of text.matchAll(reference)) {
    const [whole, path, mark] = match
    literal += text.slice(end, match.index)
    end = match.index + whole.length
    if (path === undefined) literal += '$'
    else {
      if (literal !== '') pieces.push(literal)
      literal = ''
      const endsWord = mark !== undefined && whole.length < text.length && /^(?:\s|$)/.test(text.slice(end, end + 1))
      pieces.push({
        text: `$${path}`,
        path: path.split('.') as [string, ...string[]],
        optional: mark !== undefined,
        suffix: endsWord ? '?' : '',
      })
    }
  }
  literal += text.slice(end)
  if (literal !== '') pieces.push(literal)
  return pieces
}

/** The reference that starts at an offset, and its end. For expressions, where `$$` has no meaning. */
export function referenceAt(text: string, offset: number): { reference: Reference; end: number } | undefined {
  referenceHere.lastIndex = offset
  const match = referenceHere.exec(text)
  const path = match?.[1]
  if (!match || path === undefined) return undefined
  const reference: Reference = {
    text: `$${path}`,
    path: path.split('.') as [string, ...string[]],
    optional: match[2] !== undefined,
  }
  return { reference, end: referenceHere.lastIndex }
}

/** The reference, if a string is a single reference. */
export function wholeReference(text: string): Reference | undefined {
  if (!text.startsWith('$')) return undefined
  const [first, ...more] = splitReferences(text)
  return typeof first === 'object' && more.length === 0 ? first : undefined
}

/** All references in the strings of a template, in order. */
export function references(value: unknown): Reference[] {
  if (typeof value === 'string') return splitReferences(value).filter((piece) => typeof piece === 'object')
  if (Array.isArray(value)) return value.flatMap(references)
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(references)
  return []
}
