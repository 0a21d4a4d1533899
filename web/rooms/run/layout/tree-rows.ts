/** The rows of the tree: steps, and between them the messages that were sent into the run, and summaries of what its models are told. */
import type { OutlineMark } from '../../../../src/fold/outline-item.ts'
import type { StepNode, StepTree } from '../../../../src/fold/step-tree.ts'
import { nameOf, type Selection } from '../selection.ts'

export type TreeRow =
  | { key: number; depth: number; parent: StepNode | undefined; node: StepNode; mark?: undefined }
  | { key: number; depth: number; parent: StepNode | undefined; mark: OutlineMark; node?: undefined }

/** From top to bottom. `isFolded`: whether what is below a step is hidden. */
export function treeRows(tree: StepTree, isFolded: (node: StepNode) => boolean): TreeRow[] {
  const rows: TreeRow[] = []
  const walk = (nodes: readonly StepNode[], marks: readonly OutlineMark[], parent: StepNode | undefined) => {
    const depth = parent === undefined ? 0 : parent.depth + 1
    const own = marks.filter(hasRow)
    let next = 0
    const markRows = (before: number) => {
      for (; next < own.length && own[next]!.seq < before; next++) {
        const mark = own[next]!
        rows.push({ key: mark.seq, depth, parent, mark })
      }
    }
    for (const node of nodes) {
      markRows(node.step.from)
      rows.push({ key: node.step.from, depth, parent, node })
      if (!isFolded(node)) walk(node.children, node.marks, node)
    }
    markRows(Infinity)
  }
  walk(tree.roots, tree.marks, undefined)
  return rows
}

function hasRow({ type }: OutlineMark): boolean {
  return type === 'message' || type === 'summarized'
}

/** Whether a row is what is selected, or has it: an entry of a step selects the step. */
export function isChosen({ node, mark }: TreeRow, selection: Selection): boolean {
  if (mark !== undefined) return selection.kind === 'entry' && selection.seq === mark.seq
  return 'node' in selection && selection.node?.step.from === node.step.from && !isMark(selection)
}

function isMark(selection: Selection): boolean {
  return (
    selection.kind === 'entry' &&
    selection.node !== undefined &&
    selection.node.marks.some((mark) => mark.seq === selection.seq && hasRow(mark))
  )
}

/** How a row is named in the URL. */
export function rowName({ node, mark }: TreeRow): string {
  return node === undefined ? String(mark!.seq) : nameOf(node)
}
