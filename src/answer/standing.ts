/** What a client that connects later must know of the log before it reads it, in one pass that leaves out what the run says. */
import { mergeDeltas, type Entry } from '../part/entry.ts'
import type { Log } from '../part/log.ts'
import { createSuperseded } from '../fold/superseded.ts'

export interface Standing {
  /** The `seq` of the last `resume`, or 0. */
  resumedAt: number
  /** The answer is complete. */
  isAnswered: boolean
  /** For a replay from the start: merges deltas and drops attempts that a crash superseded. */
  filter(entries: Entry[]): Entry[]
}

const types = ['step-start', 'step-reset', 'resume', 'answer-end', 'run-end'] as const

export async function readStanding(log: Log, runId: string): Promise<Standing> {
  const superseded = createSuperseded()
  const standing: Standing = {
    resumedAt: 0,
    isAnswered: false,
    filter: (entries) => mergeDeltas(superseded.isEmpty ? entries : entries.filter((entry) => !superseded.has(entry))),
  }
  for await (const batch of log.read(runId, { types })) {
    for (const entry of batch) {
      superseded.note(entry)
      if (entry.type === 'resume') standing.resumedAt = entry.seq
      else if (entry.type === 'answer-end' || entry.type === 'run-end') standing.isAnswered = true
    }
  }
  return standing
}
