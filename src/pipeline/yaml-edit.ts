/**
 * Edits of a YAML text at the places of its nodes. They know the usual layouts; whoever calls them checks what comes out, because they do not: an
 * anchor, a comment behind a value that gets several lines.
 */
import { child } from './check.ts'
import { itemsOf } from './reader.ts'
import type { MapNode, Node } from './tree.ts'

/** A value as plain data. */
type Written = string | number | readonly string[] | Readonly<Record<string, unknown>>

/** The text with another value of a key, or with a new key behind the first of `behind` that is there. The best form first. */
export function* withEntry(
  text: string,
  map: Node,
  key: string,
  value: Written,
  behind: readonly string[] = [],
): Generator<string> {
  if (map.kind !== 'map') return
  const isFlow = flowAt(text, map) !== undefined
  const before = map.entries.get(key)
  for (const written of formsOf(value, {
    isFlow,
    indent: columnOf(text, map) + 2,
    lineBreak: lineBreak(text),
    quote: before && text[before.value.at],
  })) {
    if (before !== undefined)
      yield splice(text, colonOf(text, before.at, key) + 1, entryEnd(text, before, key), ` ${written}`)
    else yield withNewEntry(text, map, `${key}: ${written}`, behind)
  }
}

function withNewEntry(text: string, map: MapNode, entry: string, behind: readonly string[]): string {
  const flow = flowAt(text, map)
  const key =
    behind.find((each) => map.entries.has(each)) ?? (behind.length > 0 ? undefined : [...map.entries.keys()].at(-1))
  if (key === undefined) {
    const isEmpty = map.entries.size === 0
    if (flow !== undefined) return splice(text, flow + 1, flow + 1, ` ${entry}${isEmpty ? ' ' : ','}`)
    const { at } = [...map.entries.values()][0]!
    return splice(text, at, at, `${entry}${lineBreak(text)}${' '.repeat(columnAt(text, at))}`)
  }
  const end = entryEnd(text, map.entries.get(key)!, key)
  if (flow !== undefined) return splice(text, end, end, `, ${entry}`)
  const lineEnd = endOfLine(text, end)
  return splice(text, lineEnd, lineEnd, `${lineBreak(text)}${' '.repeat(columnOf(text, map))}${entry}`)
}

/** The text without a key of a map. */
export function withoutEntry(text: string, map: Node, key: string): string | undefined {
  const entry = map.kind === 'map' ? map.entries.get(key) : undefined
  if (map.kind !== 'map' || entry === undefined) return undefined
  const end = entryEnd(text, entry, key)
  if (flowAt(text, map) !== undefined) return withoutFlowItem(text, entry.at, end)
  if (map.entries.size === 1) return splice(text, entry.at, end, '{}')
  return withoutLines(text, entry.at, end)
}

/** The text with an item at the end of a list that is there. */
export function withItem(text: string, map: MapNode, key: string, item: string): string | undefined {
  const list = child(map, key)
  if (list?.kind !== 'list') return undefined
  const written = plainIn(item, true) ? item : JSON.stringify(item)
  const last = list.items.at(-1)
  const flow = flowAt(text, list)
  if (last === undefined) return flow === undefined ? undefined : splice(text, flow + 1, flow + 1, written)
  const end = endOf(text, last)
  if (flow !== undefined) return splice(text, end, end, `, ${written}`)
  const dash = text.lastIndexOf('-', last.at - 1)
  const lineEnd = endOfLine(text, end)
  return splice(text, lineEnd, lineEnd, `${lineBreak(text)}${' '.repeat(columnAt(text, dash))}- ${written}`)
}

/** The text without an item of a list. */
export function withoutItem(text: string, map: Node, key: string, index: number): string | undefined {
  const entry = map.kind === 'map' ? map.entries.get(key) : undefined
  const item = itemsOf(entry?.value)[index]
  if (entry === undefined || item === undefined) return undefined
  if (itemsOf(entry.value).length === 1)
    return splice(text, colonOf(text, entry.at, key) + 1, entryEnd(text, entry, key), ' []')
  const end = endOf(text, item)
  if (flowAt(text, entry.value) !== undefined) return withoutFlowItem(text, item.at, end)
  return withoutLines(text, text.lastIndexOf('-', item.at - 1), end)
}

/** Also without the comma behind it, or before it. */
function withoutFlowItem(text: string, from: number, to: number): string {
  const after = /\s*,[^\S\r\n]*/y
  after.lastIndex = to
  if (after.test(text)) return splice(text, from, after.lastIndex, '')
  const comma = /,\s*$/u.exec(text.slice(0, from))
  return splice(text, comma?.index ?? from, to, '')
}

/** Without the lines from one place to another. */
function withoutLines(text: string, from: number, to: number): string {
  const start = text.lastIndexOf('\n', from - 1) + 1
  const end = text.indexOf('\n', to)
  return splice(text, start, end < 0 ? text.length : end + 1, '')
}

interface Layout {
  isFlow: boolean
  /** Of the lines of a text. */
  indent: number
  lineBreak: string
  /** The first character of the value before. */
  quote: string | undefined
}

function* formsOf(value: Written, { isFlow, indent, lineBreak: end, quote }: Layout): Generator<string> {
  if (typeof value === 'number') return yield String(value)
  if (typeof value === 'object') return yield flowOf(value)
  const isBlock = value.includes('\n') || quote === '|' || quote === '>'
  if (isBlock && !isFlow && value !== '') {
    const keep = value.endsWith('\n') ? (value.endsWith('\n\n') || value === '\n' ? '+' : '') : '-'
    // Its first line tells how far a text is indented, unless it begins with a space itself.
    const header = `|${/^[\s]/u.test(value) ? '2' : ''}${keep}`
    const lines = value.replace(/\n$/u, '').split('\n')
    yield [header, ...lines.map((line) => (line === '' ? '' : ' '.repeat(indent) + line))].join(end)
  }
  if (quote === "'" && !value.includes('\n')) yield `'${value.replaceAll("'", "''")}'`
  if (quote !== '"' && plainIn(value, isFlow)) yield value
  yield JSON.stringify(value)
}

function flowOf(value: readonly string[] | Readonly<Record<string, unknown>>): string {
  const write = (each: unknown): string =>
    typeof each === 'object'
      ? flowOf(each as readonly string[])
      : typeof each === 'string' && plainIn(each, true)
        ? each
        : JSON.stringify(each)
  if (Array.isArray(value)) return `[${value.map(write).join(', ')}]`
  return `{ ${Object.entries(value)
    .map(([key, each]) => `${key}: ${write(each)}`)
    .join(', ')} }`
}

/** Whether a text needs no quotes. */
function plainIn(text: string, isFlow: boolean): boolean {
  if (!/^[\p{L}\d][^\p{Cc}\u2028\u2029\uFEFF]*$/u.test(text) || /: | #|:$|\s$/u.test(text)) return false
  return !isFlow || !/[[\]{},]/u.test(text)
}

/** The offset of the bracket of a node that is written in brackets. */
function flowAt(text: string, node: Node): number | undefined {
  if (node.kind === 'scalar') return undefined
  const properties = /(?:[&!]\S*\s+)*/y
  properties.lastIndex = node.at
  properties.test(text)
  const at = properties.lastIndex
  return text[at] === '{' || text[at] === '[' ? at : undefined
}

function endOf(text: string, node: Node): number {
  if (node.kind === 'scalar') {
    let { end } = node
    // A text in lines ends with them.
    while (end > node.at && /\s/u.test(text[end - 1]!)) end--
    return end
  }
  const flow = flowAt(text, node)
  const inside = node.kind === 'list' ? node.items : [...node.entries.values()].map(({ value }) => value)
  const last = inside.at(-1)
  const end = last === undefined ? (flow ?? node.at) + 1 : endOf(text, last)
  if (flow === undefined) return end
  // A comment ends with its line: otherwise there are too many ways to read one.
  const close = /(?:[\s,:]|#[^\n]*(?:\n|$))*[\]}]/y
  close.lastIndex = end
  return close.test(text) ? close.lastIndex : end
}

/** Where the value of an entry ends: behind its colon if it has none, behind the name of an alias. */
function entryEnd(text: string, { at, value }: { at: number; value: Node }, key: string): number {
  const colon = colonOf(text, at, key) + 1
  const alias = /\s*\*[^\s,\]}]+/y
  alias.lastIndex = colon
  if (alias.test(text)) return alias.lastIndex
  return Math.max(colon, endOf(text, value))
}

function colonOf(text: string, at: number, key: string): number {
  return text.indexOf(':', at + key.length)
}

function columnOf(text: string, map: MapNode): number {
  const [first] = map.entries.values()
  return columnAt(text, first?.at ?? map.at)
}

function columnAt(text: string, at: number): number {
  return at - text.lastIndexOf('\n', at - 1) - 1
}

/** Before the line break. */
function endOfLine(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  if (end < 0) return text.length
  return text[end - 1] === '\r' ? end - 1 : end
}

function lineBreak(text: string): string {
  return text.includes('\r\n') ? '\r\n' : '\n'
}

function splice(text: string, from: number, to: number, inserted: string): string {
  return text.slice(0, from) + inserted + text.slice(to)
}
