/** Where a run can be forked without repeating work: after each complete step. */
import type { Entry } from '../part/entry.ts'
import { kindOf, type StepKind } from '../part/step-kind.ts'

export interface ForkPlace {
  seq: number
  /** The path of the complete step; empty for the start of the run. */
  step: string
  kind?: StepKind
  toolName?: string
  /** Epoch ms. */
  timestamp: number
  /** The error code, if the step failed. */
  error?: string
}

export interface ForkPlaces {
  apply(entry: Entry): void
  readonly list: readonly ForkPlace[]
  /** `seq`s of the up to four places nearest to an entry, in order. */
  near(seq: number): number[]
  /** The `seq` of the last entry before a step started. */
  before(step: string): number | undefined
}

export function createForkPlaces(): ForkPlaces {
  const list: ForkPlace[] = []
  const starts = new Map<string, { seq: number; kind: StepKind; toolName: string | undefined }>()
  return {
    list,
    apply(entry) {
      const { seq, step, timestamp } = entry
      if (entry.type === 'run-start') list.push({ seq, step, timestamp })
      else if (entry.type === 'step-start') starts.set(step, { seq, kind: kindOf(entry), toolName: entry.toolName })
      else if (entry.type === 'step-finish') {
        const { kind, toolName } = starts.get(step) ?? {}
        list.push({
          seq,
          step,
          timestamp,
          ...(kind && { kind }),
          ...(toolName !== undefined && { toolName }),
          ...(entry.error && { error: entry.error.code }),
        })
      }
    },
    near(seq) {
      const found = list.map((place) => place.seq)
      return found
        .toSorted((a, b) => Math.abs(a - seq) - Math.abs(b - seq))
        .slice(0, 4)
        .toSorted((a, b) => a - b)
    },
    before: (step) => {
      const start = starts.get(step)
      return start && start.seq - 1
    },
  }
}
