/**
 * Where in a YAML text the cursor stands: in which key of which list of which key. Read off the indentation, so that it works while
 * the text is being written and is not YAML yet. Block style only: inside of `{ … }` and of block text it says nothing.
 */
export type PathPart =
  /** The value of a key; with the keys beside it that have a simple value. */
  { kind: 'key'; name: string; beside: ReadonlyMap<string, string> } | { kind: 'item' }

export interface YamlPlace {
  /** From the outside in: of the mapping that the cursor is in. */
  path: PathPart[]
  /** The keys that the mapping has, with their simple values; that of the cursor's line is not among them. */
  beside: ReadonlyMap<string, string>
  /** Absent while a key is being written. */
  key?: string
  /** What is written of the key or of the value, and where it starts in the text. */
  typed: string
  from: number
}

interface YamlLine {
  /** Columns of the dashes before the key. */
  dashes: number[]
  /** Column of the key, or of whatever stands there. */
  column: number
  key: string | undefined
  value: string
}

const keyed = /^("[^"]*"|'[^']*'|[^\s#"'[{&*!|>%@`][^#:]*?)\s*:(?:\s+(.*))?$/u

function readLine(text: string): YamlLine | undefined {
  const dashes: number[] = []
  let column = text.length - text.trimStart().length
  while (/^-(?:\s|$)/u.test(text.slice(column))) {
    dashes.push(column)
    column += 1 + (/^\s*/u.exec(text.slice(column + 1))?.[0].length ?? 0)
  }
  const rest = text.slice(column)
  if (rest.startsWith('#') || (rest === '' && dashes.length === 0)) return undefined
  const [, key, value = ''] = keyed.exec(rest.trimEnd()) ?? []
  return { dashes, column, key: key?.replaceAll(/^["']|["']$/gu, ''), value: simple(value) }
}

function simple(value: string): string {
  return value
    .replace(/(?:^|\s)#.*$/u, '')
    .trim()
    .replaceAll(/^["']|["']$/gu, '')
}

export function yamlPlace(text: string, position: number): YamlPlace | undefined {
  const start = text.lastIndexOf('\n', position - 1) + 1
  const before = text.slice(start, position)
  if (/(?:^|\s)#/u.test(before)) return undefined
  const lines = text.split('\n').map(readLine)
  const at = text.slice(0, start).split('\n').length - 1
  const own = readLine(before) ?? { dashes: [], column: before.length, key: undefined, value: '' }
  const colon = /:\s+(\S*)$/u.exec(before)
  // Anything before a lone word: a value with spaces, a flow mapping.
  const typed = own.key === undefined ? before.slice(own.column) : colon?.[1]
  if (typed === undefined || /[\s{}[\]"']/u.test(typed)) return undefined

  const path: PathPart[] = []
  let column = own.column
  let dashes = [...own.dashes]
  let beside = keysBeside(lines, at, column, dashes.length > 0)
  const inside = beside
  for (let i = at; ;) {
    // The dashes of this line, and where none are, the line above that began the mapping with one.
    for (const dash of dashes.toReversed()) {
      path.unshift({ kind: 'item' })
      column = dash
    }
    const isItem = dashes.length > 0
    const parent = lines.findLastIndex((line, j) => {
      if (j >= i || line === undefined) return false
      const [first] = line.dashes
      // A list may stand as far left as its key.
      return (
        line.column < column ||
        (isItem && line.column === column && line.dashes.length === 0) ||
        (first ?? column) < column
      )
    })
    const line = lines[parent]
    if (line === undefined) break
    if (line.column < column || (isItem && line.column === column && line.dashes.length === 0)) {
      // What is not a key with nothing behind it has no mapping below: text that goes on, `|`.
      if (line.key === undefined || line.value !== '') return undefined
      beside = keysBeside(lines, parent, line.column, line.dashes.length > 0)
      path.unshift({ kind: 'key', name: line.key, beside })
      column = line.column
    }
    dashes = line.dashes.filter((dash) => dash < column)
    i = parent
  }
  return {
    path,
    beside: inside,
    ...(own.key === undefined ? undefined : { key: own.key }),
    typed,
    from: position - typed.length,
  }
}

/** The keys of the mapping that a line is in, without its own. `isFirst`: its dash begins the mapping. */
function keysBeside(
  lines: readonly (YamlLine | undefined)[],
  at: number,
  column: number,
  isFirst: boolean,
): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  const take = (line: YamlLine) => line.column === column && line.key !== undefined && found.set(line.key, line.value)
  for (let i = at - 1; i >= 0 && !isFirst; i--) {
    const line = lines[i]
    if (line === undefined) continue
    if (line.column < column) break
    take(line)
    if (line.column === column && line.dashes.length > 0) break
  }
  for (let i = at + 1; i < lines.length; i++) {
    const line = lines[i]
    if (line === undefined) continue
    if (line.column < column || (line.dashes[0] ?? column) < column) break
    take(line)
  }
  return found
}
