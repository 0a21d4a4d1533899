/** Where the model calls of a recorded run are in its log. Memory grows with the number of calls, not with what they said. */
import { badOutput } from '../fold/reply-messages.ts'
import type { Entry, EntryOf } from '../part/entry.ts'
import { isUnder, parentPath } from '../part/path.ts'
import type { Recording } from '../part/recording.ts'
import { kindOf } from '../part/step-kind.ts'

export interface RecordedCall {
  path: string
  /** What the call said comes after this `seq`: behind its start, or behind the last attempt that failed. */
  from: number
  /** The `seq` of its end; Infinity if it has none. */
  to: number
}

export interface RecordedCalls {
  /** The calls of each step, in order, by their own paths. Without those that a `step-reset` discarded. */
  steps: Map<string, Map<string, RecordedCall>>
  /** The run has ended, so no more calls follow. */
  isWhole: boolean
}

/** Entries of other types say nothing about where calls are. */
const types: readonly Entry['type'][] = ['step-start', 'step-finish', 'step-reset', 'retry', 'run-end']

export async function indexCalls(recording: Recording): Promise<RecordedCalls> {
  const calls: RecordedCalls = { steps: new Map(), isWhole: false }
  for await (const batch of recording.read({ types })) for (const entry of batch) note(calls, entry)
  return calls
}

function note(calls: RecordedCalls, entry: Entry): void {
  const { step, seq } = entry
  const { steps } = calls
  switch (entry.type) {
    case 'step-start': {
      if (kindOf(entry) !== 'model-call') return
      const parent = parentPath(step)
      let own = steps.get(parent)
      if (own === undefined) steps.set(parent, (own = new Map()))
      own.set(step, { path: step, from: seq, to: Infinity })
      return
    }
    case 'step-reset':
      for (const [parent, own] of steps) {
        for (const path of own.keys()) if (isUnder(path, step)) own.delete(path)
        if (own.size === 0) steps.delete(parent)
      }
      return
    case 'retry': {
      const call = steps.get(parentPath(step))?.get(step)
      if (call !== undefined && isReplacing(entry)) call.from = seq
      return
    }
    case 'step-finish': {
      const call = steps.get(parentPath(step))?.get(step)
      if (call !== undefined) call.to = seq
      return
    }
    case 'run-end':
      calls.isWhole = true
      return
    default:
  }
}

/** Whether the attempt before a `retry` said nothing that counts. Rejected JSON counts: the next call answers it. */
function isReplacing({ error }: EntryOf<'retry'>): boolean {
  return error.code !== badOutput
}
