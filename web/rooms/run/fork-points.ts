/** Where a run can be forked so that something still runs, and what ran from there. */
import type { StepNode, StepTree } from '../../../src/fold/step-tree.ts'
import { labelOf } from '../../../src/fold/step-tree.ts'

export interface ForkPoint {
  /** The last entry that both runs share. */
  at: number
  label: string
}

/** The start, and before each model call: the last of them are enough to choose from. */
export function forkPoints(tree: StepTree): ForkPoint[] {
  const calls = tree.all.filter(({ step }) => step.kind === 'model-call' && step.superseded === undefined)
  const before = calls.map((node, i) => ({
    at: Math.max(1, node.step.from - 1),
    label: `Before model call ${i + 1}: ${workName(node)}`,
  }))
  return [{ at: 1, label: 'The start' }, ...before.slice(-mostPoints)]
}

const mostPoints = 100

/** The last entry behind which the run had something to do. Infinite for a run that goes on. */
export function lastForkPoint(tree: StepTree, isLive: boolean): number {
  if (isLive) return Infinity
  let last = 1
  // What has no step-finish was cut off, and begins again.
  for (const { step } of workOf(tree)) last = Math.max(last, step.end === undefined ? Infinity : step.to - 1)
  return last
}

/** Where a fork begins unless the reader says otherwise: where they stand, else before the last model call. */
export function usualForkPoint(tree: StepTree, at: number | undefined, lastSeq: number, isLive: boolean): number {
  const here = at ?? lastSeq
  if (here <= lastForkPoint(tree, isLive)) return here
  return forkPoints(tree).at(-1)!.at
}

/** Names of what ran from there on, in order, the same ones in a row as one; and how many steps are kept. */
export function runsFrom(tree: StepTree, at: number): { kept: number; names: string[] } {
  const names: { name: string; n: number }[] = []
  let kept = 0
  for (const node of workOf(tree)) {
    const { step } = node
    if (step.end !== undefined && step.to <= at) {
      kept++
      continue
    }
    const name = workName(node)
    const last = names.at(-1)
    if (last?.name === name) last.n++
    else names.push({ name, n: 1 })
  }
  return { kept, names: names.map(({ name, n }) => (n === 1 ? name : `${n} × ${name}`)) }
}

/** Of a model call, the model: which it is says the most. */
function workName(node: StepNode): string {
  const { kind, model } = node.step
  return kind === 'model-call' && model !== undefined ? model : labelOf(node).name
}

/** Steps that do something themselves: they hold no others. */
function workOf(tree: StepTree): StepNode[] {
  return tree.all.filter(({ children, step }) => children.length === 0 && step.superseded === undefined)
}
