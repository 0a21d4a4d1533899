/** Counts what a run has said and done, without what a `step-reset` has discarded. */
import { isUnder } from '../part/path.ts'
import { LateMap } from './late-map.ts'
import type { Summary } from './run-view.ts'

const kinds = [
  'textBlocks',
  'reasoningBlocks',
  'toolCalls',
  'toolResults',
  'errors',
] as const satisfies (keyof Summary)[]

export class SummaryFold {
  readonly counts: Summary = { textBlocks: 0, reasoningBlocks: 0, toolCalls: 0, toolResults: 0, errors: 0 }
  /** Of each that was counted, its step and its kind, in their order. Two lists take less than one of pairs. */
  private readonly steps: string[] = []
  private readonly kinds: number[] = []
  /** Where in them the last attempt of a step began. */
  private readonly begun = new LateMap<string, number>()

  begin(step: string): void {
    this.begun.set(step, this.steps.length)
  }

  add(step: string, kind: (typeof kinds)[number]): void {
    this.counts[kind]++
    this.steps.push(step)
    this.kinds.push(kinds.indexOf(kind))
  }

  /** The last attempt of the step is discarded, with all that is below it. */
  reset(step: string): void {
    // What came before the attempt is not looked at: resets of one step take linear time.
    for (let i = this.begun.get(step) ?? 0; i < this.steps.length; i++) {
      const kind = this.kinds[i]!
      if (kind < 0 || !isUnder(this.steps[i]!, step)) continue
      this.counts[kinds[kind]!]--
      this.kinds[i] = -1
    }
  }
}
