/** The time between what a fork shares with its source and what it did itself. */
import type { StepTree } from './step-tree.ts'

/**
 * Of a fork: from the last entry that it shares with its source to when it was forked. It did nothing then: it did not exist.
 */
export function forkGap({ marks, all }: StepTree): { from: number; to: number } | undefined {
  const { fork, at } = marks[0] ?? {}
  if (fork === undefined || at === undefined) return undefined
  let from = at
  const see = (seq: number, time: number | undefined) => {
    if (seq <= fork.seq && time !== undefined) from = Math.max(from, time)
  }
  for (const mark of marks) see(mark.to ?? mark.seq, mark.at)
  for (const { step, blocks, marks: inside } of all) {
    see(step.from, step.at)
    see(step.to, step.end)
    for (const block of blocks) {
      see(block.from, block.at)
      see(block.to, block.end)
      // What a block had said when its step was begun anew: its end is that of the fork.
      const { first, rate, per = 0, superseded, end } = block
      if (superseded !== undefined || end === undefined)
        see(block.from, first && first + Math.max(0, (rate?.length ?? 0) - 1) * per)
    }
    for (const mark of inside) see(mark.seq, mark.at)
  }
  return { from: Math.min(from, fork.at), to: fork.at }
}
