/**
 * What a run said last, kept for the readers that are close behind it: they get the very entries that were appended, and
 * nothing is read back and parsed for them. Bounded, whatever the readers do; one that lags further reads the database.
 */
import type { Entry } from '../part/entry.ts'

/** Characters of JSON: about a fifth more in memory. */
const most = 128 * 1024

/** Where one reader stands. */
export interface Position {
  seq: number
}

export interface Recent {
  readonly readers: Set<Position>
  /** Whether its first reader has come, or is not waited for any more. */
  readonly met: boolean
  meet(): void
  /** Characters of JSON that are kept. */
  readonly length: number
  push(entries: Entry[], length: number): void
  /** All that is stored after this entry; undefined when some of it is not here any more. */
  after(seq: number): Entry[] | undefined
}

export function createRecent(): Recent {
  const readers = new Set<Position>()
  const batches: { entries: Entry[]; length: number }[] = []
  let total = 0
  /** What was pushed first is there. */
  let whole = true
  let met = false

  /**
   * For the first reader the beginning is kept, until it is too much: without it the rest is of no use to him. Afterwards
   * the last one stays: a reader that comes now, or waits, begins with it.
   */
  function trim(): void {
    if (whole && !met && total <= most) return
    let seen = Infinity
    for (const { seq } of readers) seen = Math.min(seen, seq)
    let gone = 0
    while (gone < batches.length - 1) {
      const { entries, length } = batches[gone]!
      if (total <= most && entries.at(-1)!.seq > seen) break
      total -= length
      gone++
    }
    if (gone === 0) return
    batches.splice(0, gone)
    whole = false
  }

  return {
    readers,
    get met() {
      return met
    },
    meet() {
      met = true
      trim()
    },
    get length() {
      return total
    },
    push(entries, length) {
      batches.push({ entries, length })
      total += length
      trim()
    },
    after(seq) {
      const at = batches.findLastIndex(({ entries }) => entries[0]!.seq <= seq + 1)
      if (at < 0) return undefined
      const { entries } = batches[at]!
      const rest = entries.slice(seq + 1 - entries[0]!.seq)
      return at === batches.length - 1 ? rest : rest.concat(...batches.slice(at + 1).map((batch) => batch.entries))
    },
  }
}
