/** Changes one case in the text of a file, and nothing else of it. */
import { equal } from '../part/equal.ts'
import { MillraceError } from '../part/error.ts'
import { child } from '../pipeline/check.ts'
import { createFaultCollector } from '../pipeline/fault.ts'
import { parseTree, type Node } from '../pipeline/tree.ts'
import { readCases, slugOf } from './read-cases.ts'
import type { TestCase } from './test-case.ts'

/** The text without this case; undefined if it was the only one. */
export function withoutCase(text: string, path: string, slug: string): string | undefined {
  const { cases } = readCases(text, path)
  const at = cases.findIndex((each) => each.slug === slug)
  if (cases.length === 1) return undefined
  const root = treeOf(text)
  const from = startOf(text, child(child(root, 'cases'), at)!)
  const changed = text.slice(0, from) + text.slice(endOf(text, root, at))
  if (says(changed, path, cases.toSpliced(at, 1))) return changed
  throw new MillraceError('bad-input', `${path} is not written with one case below the other. Delete the case there.`)
}

/** The lines of a case in the file. */
export function caseText(text: string, slug: string, cases: readonly TestCase[]): string {
  const at = cases.findIndex((each) => each.slug === slug)
  const root = treeOf(text)
  const lines = text.slice(lineAt(text, child(child(root, 'cases'), at)!), endOf(text, root, at)).trimEnd()
  const indent = /^ */u.exec(lines)![0].length
  return lines
    .split('\n')
    .map((line) => line.replace(new RegExp(`^ {0,${indent}}`, 'u'), ''))
    .join('\n')
}

/** The text in which the last turn of the case expects exactly this answer. It must expect another one exactly. */
export function withAnswer(text: string, path: string, slug: string, answer: string): string {
  const { cases } = readCases(text, path)
  const at = cases.findIndex((each) => each.slug === slug)
  const node = child(child(treeOf(text), 'cases'), at)
  const turns = child(node, 'turns')
  const turn = turns?.kind === 'list' ? turns.items.at(-1) : node
  const equals = child(child(child(turn, 'expect'), 'text'), 'equals')
  if (equals?.kind === 'scalar') {
    const changed = text.slice(0, equals.at) + JSON.stringify(answer) + endOfScalar(text, equals)
    if (says(changed, path, cases.with(at, expecting(cases[at]!, answer)))) return changed
  }
  throw new MillraceError('bad-input', `${cases[at]!.name} does not expect one exact answer. Change it in ${path}.`)
}

/** The text in which the case has another name. */
export function withName(text: string, path: string, slug: string, name: string): string {
  const { cases } = readCases(text, path)
  const at = cases.findIndex((each) => each.slug === slug)
  const test = cases[at]!
  const taken = cases.find((each, i) => i !== at && each.slug === slugOf(name))
  if (taken !== undefined) {
    throw new MillraceError('bad-input', `There is a case "${taken.name}" already in ${path}. Choose another name.`)
  }
  const node = child(child(child(treeOf(text), 'cases'), at), 'name')
  if (node?.kind === 'scalar') {
    const changed = text.slice(0, node.at) + JSON.stringify(name) + endOfScalar(text, node)
    if (says(changed, path, cases.with(at, { ...test, name, slug: slugOf(name) }))) return changed
  }
  throw new MillraceError('bad-input', `The name of ${test.name} is not a text of its own. Change it in ${path}.`)
}

function expecting(test: TestCase, answer: string): TestCase {
  const turn = test.turns.at(-1)!
  const { expect } = turn
  const changed = { ...turn, expect: { ...expect, text: { ...expect.text!, equals: [answer] } } }
  return { ...test, turns: test.turns.with(-1, changed) }
}

/** A block scalar ends behind its last line break. */
function endOfScalar(text: string, { end }: { end: number }): string {
  return (/\r?\n$/u.exec(text.slice(0, end))?.[0] ?? '') + text.slice(end)
}

function treeOf(text: string): Node {
  return parseTree(text, createFaultCollector(text))!
}

function lineAt(text: string, { at }: Pick<Node, 'at'>): number {
  return text.lastIndexOf('\n', at - 1) + 1
}

/** With the comments above it, which are about it. Deeper ones may be the end of a text above. */
function startOf(text: string, item: Node): number {
  let start = lineAt(text, item)
  const indent = /^ */u.exec(text.slice(start))![0]
  while (start > 0) {
    const above = lineAt(text, { at: start - 1 })
    if (!text.startsWith(`${indent}#`, above)) return start
    start = above
  }
  return start
}

/** Where the case after it begins, or the key after the cases, or the end of the text. */
function endOf(text: string, root: Node, at: number): number {
  const list = child(root, 'cases')!
  const next = child(list, at + 1)
  if (next !== undefined) return startOf(text, next)
  const keys = root.kind === 'map' ? [...root.entries.values()] : []
  const after = keys.filter((key) => key.at > list.at).map((key) => key.at)
  return after.length === 0 ? text.length : lineAt(text, { at: Math.min(...after) })
}

/** Whether these are its cases, wherever they stand: an anchor may be shared by several. */
function says(text: string, path: string, wanted: readonly TestCase[]): boolean {
  const withoutLines = (cases: readonly TestCase[]) => cases.map((test) => ({ ...test, line: 0 }))
  try {
    return equal(withoutLines(readCases(text, path).cases), withoutLines(wanted))
  } catch {
    return false
  }
}
