/** The runs of a thread as a conversation: runs that continue the same run are branches, of which one is shown. */
import type { RunRow } from '../../../src/part/log.ts'

export interface Branching {
  run: RunRow
  /** The runs that continue the same run, this one included, oldest first. */
  siblings: readonly RunRow[]
}

/**
 * From the first run to the end of the branch that goes through `through`; default: to the newest run. At each later branching the
 * newest one is taken. `isClientKept`: agents whose clients keep the conversation. Their runs name no run before them; they follow
 * one another.
 */
export function branchOf(
  rows: readonly RunRow[],
  through: string | undefined,
  isClientKept: (agent: string) => boolean,
): Branching[] {
  const runs = rows.toSorted((a, b) => a.startedAt - b.startedAt || a.lastSeq - b.lastSeq)
  const known = new Set(runs.map(({ id }) => id))
  const previous = new Map<RunRow, string>()
  const next = new Map<string, RunRow[]>()
  runs.forEach((run, i) => {
    const named = run.previousRunId ?? (isClientKept(run.agent) ? runs[i - 1]?.id : undefined)
    const before = named !== undefined && known.has(named) ? named : ''
    previous.set(run, before)
    const siblings = next.get(before)
    if (siblings === undefined) next.set(before, [run])
    else siblings.push(run)
  })
  const byId = new Map(runs.map((run) => [run.id, run]))
  const chosen = byId.get(through ?? '') ?? runs.at(-1)
  if (chosen === undefined) return []
  const path: RunRow[] = []
  // A recording may say that a run continues itself, or one that continues it.
  const seen = new Set<RunRow>()
  for (let at: RunRow | undefined = chosen; at !== undefined && !seen.has(at); at = byId.get(previous.get(at)!)) {
    seen.add(at)
    path.push(at)
  }
  path.reverse()
  for (let at = next.get(chosen.id)?.at(-1); at !== undefined && !seen.has(at); at = next.get(at.id)?.at(-1)) {
    seen.add(at)
    path.push(at)
  }
  return path.map((run) => ({ run, siblings: next.get(previous.get(run)!)! }))
}
