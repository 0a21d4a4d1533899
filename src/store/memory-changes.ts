/** The changes of all kept runs, in memory. A run has only their positions; the entries are those of the run. */
import type { Entry } from '../part/entry.ts'
import type { Change } from '../part/log.ts'

export interface ChangedRun {
  row: { id: string }
  entries: Entry[]
  /** Pairs of a position and the number of entries after it. The first pair is not a change, but what the run began with. */
  marks: number[]
}

/** At most about `most` changes after this position, of all runs. `last`: the last position. */
export function changesAfter(runs: Iterable<ChangedRun>, after: number, most: number, last: number): Change[] {
  const all = [...runs]
  for (let from = after; from < last;) {
    const found = all.flatMap((run) => changesBetween(run, from, from + most)).toSorted((a, b) => a.n - b.n)
    if (found.length > 0) return found
    // Those of dropped runs are gone: go on at the next one that is kept.
    from = Math.min(...all.map(({ marks }) => (marks[2 * indexAfter(marks, from)] ?? Infinity) - 1))
  }
  return []
}

function changesBetween({ row, entries, marks }: ChangedRun, after: number, end: number): Change[] {
  const changes: Change[] = []
  for (let i = indexAfter(marks, after); 2 * i < marks.length && marks[2 * i]! <= end; i++) {
    changes.push({ n: marks[2 * i]!, run: row.id, entries: entries.slice(marks[2 * i - 1], marks[2 * i + 1]) })
  }
  return changes
}

/** The index of the first pair after a position. */
function indexAfter(marks: number[], position: number): number {
  let low = 1
  let high = marks.length / 2
  while (low < high) {
    const middle = (low + high) >> 1
    if (marks[2 * middle]! <= position) low = middle + 1
    else high = middle
  }
  return low
}
