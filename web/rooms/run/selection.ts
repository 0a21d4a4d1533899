/** What is selected: `run`, the path of a step, or the `seq` of an entry. */
import type { StepNode, StepTree } from '../../../src/fold/step-tree.ts'

export type Selection =
  | { kind: 'none' | 'run' }
  | { kind: 'step'; node: StepNode }
  | { kind: 'entry'; seq: number; node: StepNode | undefined }
  /** Its step has not started at this point, or not yet. */
  | { kind: 'absent'; path: string }

export function readSelection(
  text: string | undefined,
  tree: StepTree,
  isStart: (seq: number) => StepNode | undefined,
): Selection {
  if (text === undefined) return { kind: 'none' }
  if (text === 'run') return { kind: 'run' }
  if (/^\d{1,15}$/u.test(text)) return { kind: 'entry', seq: Number(text), node: isStart(Number(text)) }
  const node = tree.at(text)
  return node === undefined ? { kind: 'absent', path: text } : { kind: 'step', node }
}

/** How a step is named in the URL: by its path, or an attempt that a crash has ended by its first entry. */
export function nameOf({ step }: StepNode): string {
  return step.superseded === undefined ? step.path : String(step.from)
}
