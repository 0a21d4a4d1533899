/** A fold: the ids of the steps that have begun and not ended. */
import type { Entry } from '../../../src/part/entry.ts'

export function createOpenSteps() {
  const open = new Set<string>()
  return {
    apply({ type, step }: Entry): void {
      if (type === 'step-start') open.add(step)
      else if (type === 'step-finish') open.delete(step)
      else if (type === 'run-end') open.clear()
    },
    /** Every name in the paths of those: `main/rounds/2/judge` is the steps `rounds` and `judge`. */
    ids: (): ReadonlySet<string> => new Set([...open].flatMap((path) => path.split('/').slice(1))),
  }
}
