/** The own entries of a step, up to the place of the scrubber. */
import { useMemo } from 'react'
import type { Entry } from '../../../../src/part/entry.ts'
import { useWindow } from '../data/use-entries.ts'
import type { Window } from '../data/windows.ts'
import { rowAt } from '../../../../src/fold/log-rows.ts'
import type { StepNode } from '../../../../src/fold/step-tree.ts'
import type { Room } from '../use-room.ts'

export interface StepEntries {
  /** Undefined: not read yet. */
  entries: readonly Entry[] | undefined
  error: unknown
  retry(): void
}

/** A step with more is read merged: again at each place of the scrubber. */
const mostRaw = 5000

export function useStepEntries({ windows, store, model, at, snapshot }: Room, node: StepNode | undefined): StepEntries {
  const step = node && (model.whole.of(node.step.path, node.step.from)?.step ?? node.step)
  const live = store.live()
  // Deltas that came live may be merged: where the run is rewound into them, the log has each of them.
  const stored = at !== undefined && at >= live.from ? at : Math.min(snapshot.lastSeq, live.from - 1)
  let window: Window | undefined
  // What has ended is stored, also before all of the outline is here.
  const known = step?.end !== undefined && !snapshot.isLoaded ? step.to : snapshot.isLoaded ? stored : 0
  if (step !== undefined && step.from <= known) {
    const to = step.end === undefined ? known : Math.min(step.to, known)
    const isBig = to - step.from > mostRaw
    const before = isBig && at !== undefined ? Math.min(to, at) + 1 : to + 1
    window = { after: step.from - 1, before, step: step.path, ...(isBig && { merge: true }) }
  }
  const subject = step === undefined ? '' : `${step.path} ${step.from}`
  const { entries, error, retry } = useWindow(windows, subject, window)
  const seq = at ?? Math.max(snapshot.lastSeq, known)
  const shown = useMemo(() => {
    if (step === undefined || (window !== undefined && entries === undefined)) return undefined
    const own = (entries ?? []).filter((entry) => entry.step === step.path && entry.seq <= seq)
    const rest = live.entries.slice(rowAt(live.entries, Math.max(stored, step.from - 1)) + 1)
    for (const entry of rest) {
      if (entry.seq > seq) break
      if (entry.step === step.path) own.push(entry)
      if (step.end !== undefined && entry.seq >= step.to) break
    }
    return own
    // `live.entries` is one list that grows: `seq` tells that it has.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [step, entries, seq, stored, window === undefined])
  return { entries: shown, error, retry }
}
