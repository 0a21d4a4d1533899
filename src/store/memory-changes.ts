/** The changes of all kept runs, in memory: positions only, the entries are those of the runs. */
import type { Entry } from '../part/entry.ts'
import type { Change } from '../part/log.ts'

/** A run's entries, until it is dropped. */
export interface ChangedRun {
  id: string
  entries: Entry[] | undefined
  /** The number of its changes. */
  changes: number
}

export interface KeptChanges {
  readonly position: number
  /** Adds a change: the entries of the run from this index on. */
  add(run: ChangedRun, from: number): void
  /** Drops the changes of a run. */
  drop(run: ChangedRun): void
  /** At most `most` changes after this one. */
  after(n: number, most: number): Change[]
}

export function createKeptChanges(): KeptChanges {
  // Parallel lists, sorted by `ns`: no object for each append.
  let ns: number[] = []
  let runs: ChangedRun[] = []
  let starts: number[] = []
  let ends: number[] = []
  let position = 0
  let dropped = 0

  function compact(): void {
    const kept = runs.map(({ entries }) => entries !== undefined)
    const keep = (_: unknown, i: number) => kept[i]!
    ns = ns.filter(keep)
    starts = starts.filter(keep)
    ends = ends.filter(keep)
    runs = runs.filter(keep)
    dropped = 0
  }

  /** The index of the first change after `n`. */
  function indexAfter(n: number): number {
    let low = 0
    let high = ns.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (ns[middle]! <= n) low = middle + 1
      else high = middle
    }
    return low
  }

  return {
    get position() {
      return position
    },
    add(run, from) {
      ns.push(++position)
      runs.push(run)
      starts.push(from)
      ends.push(run.entries!.length)
      run.changes++
    },
    drop(run) {
      run.entries = undefined
      dropped += run.changes
      // At most half of the lists are of dropped runs, and each is moved once on average.
      if (dropped > ns.length / 2) compact()
    },
    after(n, most) {
      const changes: Change[] = []
      for (let i = indexAfter(n); i < ns.length && changes.length < most; i++) {
        const { id, entries } = runs[i]!
        if (entries !== undefined) changes.push({ n: ns[i]!, run: id, entries: entries.slice(starts[i], ends[i]) })
      }
      return changes
    },
  }
}
