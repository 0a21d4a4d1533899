/** Where a mutant could be: every place in the source that one of the operators can change, in an order that a seed decides. */
import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'rolldown/utils'
import { partTypes } from '../../src/part/part.ts'
import { runStatuses } from '../../src/part/log.ts'
import type { Change } from './mutant.ts'

export const rooms = ['fold', 'wire', 'store', 'engine', 'runtime', 'server'] as const
export type Room = (typeof rooms)[number]

export interface Site extends Change {
  operator: string
}

interface Node {
  type: string
  start: number
  end: number
  [key: string]: unknown
}

interface Edit {
  operator: string
  start: number
  end: number
  text: string
}

const boundaries = new Map([
  ['<', '<='],
  ['<=', '<'],
  ['>', '>='],
  ['>=', '>'],
])
const opposites = new Map([
  ['&&', '||'],
  ['||', '&&'],
  ['+', '-'],
  ['-', '+'],
])
/** Each name stands for the next one of its list. */
const names = new Map(
  [partTypes, runStatuses].flatMap((list) => list.map((name, at) => [name, list[(at + 1) % list.length]!])),
)

const isNode = (value: unknown): value is Node => typeof (value as Node | null)?.type === 'string'
const isText = ({ type, value }: Node) =>
  type === 'TemplateLiteral' || (type === 'Literal' && typeof value === 'string')

function editsOf(node: Node, text: string): Edit[] {
  const put = (operator: string, { start, end }: Node, put: string): Edit => ({ operator, start, end, text: put })
  const source = (each: Node) => text.slice(each.start, each.end)
  if (node.type === 'IfStatement' || node.type === 'ConditionalExpression') {
    const test = node['test'] as Node
    return [put('negated condition', test, `!(${source(test)})`)]
  }
  if (node.type === 'BinaryExpression' || node.type === 'LogicalExpression') {
    const { left, right } = node as Node & { left: Node; right: Node }
    const operator = node['operator'] as string
    const other = boundaries.get(operator) ?? opposites.get(operator)
    if (other === undefined || isText(left) || isText(right)) return []
    const between = text.slice(left.end, right.start)
    const place = left.end + between.indexOf(operator)
    const kind = boundaries.has(operator) ? 'boundary' : node.type === 'LogicalExpression' ? 'and, or' : 'plus, minus'
    return [{ operator: kind, start: place, end: place + operator.length, text: other }]
  }
  if (node.type === 'ExpressionStatement' && (node['expression'] as Node).type === 'CallExpression') {
    return [put('call left out', node, ';')]
  }
  if (node.type === 'ReturnStatement' && isNode(node['argument'])) {
    return source(node['argument']) === 'undefined' ? [] : [put('nothing returned', node['argument'], 'undefined')]
  }
  if (node.type === 'Literal' && typeof node['value'] === 'number') {
    const value = node['value']
    return [put('other number', node, String(value < 100 ? value + 1 : value * 2))]
  }
  if (node.type === 'Literal' && typeof node['value'] === 'string') {
    const other = names.get(node['value'])
    return other === undefined ? [] : [put('other name', node, `'${other}'`)]
  }
  return []
}

/** Types, imports and the keys of objects do nothing when the code runs. */
function walk(node: Node, visit: (node: Node) => void): void {
  if (node.type.startsWith('TS') && !/^TS(?:As|Satisfies|NonNull)/u.test(node.type)) return
  if (node.type.startsWith('Import') || node.type === 'ExportAllDeclaration') return
  visit(node)
  for (const [name, value] of Object.entries(node)) {
    if (name === 'key' && node['computed'] !== true) continue
    for (const each of Array.isArray(value) ? value : [value]) if (isNode(each)) walk(each, visit)
  }
}

/** The lines of an edit, and as many before it as make them the only ones of their kind in the file. */
function changeOf(file: string, text: string, edit: Edit): Site | undefined {
  let start = text.lastIndexOf('\n', edit.start - 1) + 1
  const next = text.indexOf('\n', edit.end)
  const end = next === -1 ? text.length : next
  while (text.indexOf(text.slice(start, end)) !== text.lastIndexOf(text.slice(start, end))) {
    if (start === 0) return undefined
    start = text.lastIndexOf('\n', start - 2) + 1
  }
  const replacement = text.slice(start, edit.start) + edit.text + text.slice(edit.end, end)
  return { file, operator: edit.operator, original: text.slice(start, end), replacement }
}

function sitesOf(root: string, file: string): Site[] {
  const text = readFileSync(join(root, file), 'utf8')
  const edits: Edit[] = []
  walk(parseSync(file, text, { lang: 'ts' }).program as unknown as Node, (node) => edits.push(...editsOf(node, text)))
  return edits.map((edit) => changeOf(file, text, edit)).filter((site) => site !== undefined)
}

function filesOf(root: string, room: Room): string[] {
  return globSync(`src/${room}/**/*.ts`, { cwd: root })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => !/\.(?:test|contract)\.ts$|\/testing\/|\/archive\//u.test(file))
}

/**
 * The sites of a room, one of each operator after the other, and none in a file that has had its turn before all files had theirs. What is
 * edited elsewhere changes nothing in the order.
 */
export function orderedSites(root: string, room: Room, seed: number): Site[] {
  const rank = (text: string) => createHash('sha256').update(`${seed}:${text}`).digest('hex')
  const ranked = filesOf(root, room)
    .flatMap((file) => sitesOf(root, file))
    .map((site) => ({ site, rank: rank(JSON.stringify(site)) }))
    .toSorted((one, other) => (one.rank < other.rank ? -1 : 1))
    .map(({ site }) => site)
  const byOperator = Map.groupBy(ranked, ({ operator }) => operator)
  const operators = [...byOperator.keys()].toSorted((one, other) => (rank(room + one) < rank(room + other) ? -1 : 1))
  const turns = new Map<string, number>()
  const ordered: { site: Site; turn: number }[] = []
  while (byOperator.size > 0) {
    for (const operator of operators) {
      const site = byOperator.get(operator)?.shift()
      if (site === undefined) {
        byOperator.delete(operator)
        continue
      }
      const turn = turns.get(site.file) ?? 0
      turns.set(site.file, turn + 1)
      ordered.push({ site, turn })
    }
  }
  return ordered.toSorted((one, other) => one.turn - other.turn).map(({ site }) => site)
}
