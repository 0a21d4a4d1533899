import type { AgentTree, TreeStep } from '../../../src/part/agent-tree.ts'

/** The innermost step whose text the line is in: the last one that begins at it or above. */
export function stepAtLine({ workflow, after }: AgentTree, line: number): TreeStep | undefined {
  let found: TreeStep | undefined
  const look = (steps: readonly TreeStep[]) => {
    for (const step of steps) {
      if (step.line <= line && (found === undefined || step.line >= found.line)) found = step
      for (const list of step.lists ?? []) look(list.steps)
    }
  }
  look(workflow)
  look(after)
  return found
}
