/**
 * Caches the latest entries of a run for readers that keep up: they get the appended entries themselves, without a read from the database. The
 * cache is bounded; a reader that lags further reads the database.
 */
import type { Entry } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import { mergedAround } from '../fold/compaction.ts'

/** Maximum size in characters of JSON; takes about 20 % more memory. */
const most = 128 * 1024

/** Up to this number, all readers are checked each time one advances. */
const fewReaders = 8

/** The position of a reader. */
export interface Position {
  seq: number
}

export interface LiveTail {
  readonly readers: Set<Position>
  /** Whether the cache waits for the first reader, for which it keeps everything up to the limit. */
  readonly waits: boolean
  /** Call this when the first reader has arrived, or is no longer expected. */
  stopWaiting(): void
  /** The size of the cached entries, in characters of JSON. */
  readonly length: number
  push(entries: readonly Entry[], length: number): void
  /** Returns all entries after this one; undefined if some of them are no longer cached. */
  after(seq: number): Entry[] | undefined
  /** Call this when a reader has advanced: drops the batches that all readers have read. */
  taken(): void
}

interface CachedBatch {
  entries: readonly Entry[]
  length: number
}

export function createLiveTail(): LiveTail {
  return new LiveTailCache()
}

/** A class, not closures: one for each open stream (decisions/0028). */
class LiveTailCache implements LiveTail {
  readonly readers = new Set<Position>()
  waits = true
  length = 0
  #batches: CachedBatch[] = []
  /** Whether the first batch is still cached. */
  #whole = true

  /**
   * Until the first reader arrives, keeps everything up to the limit, because that reader starts at the beginning. After
   * that, keeps at least `least` of the last batches.
   */
  #trim(least: 0 | 1): void {
    if (this.#whole && this.waits && this.length <= most) return
    const batches = this.#batches
    let seen = Infinity
    for (const { seq } of this.readers) seen = Math.min(seen, seq)
    let gone = 0
    while (gone < batches.length - least) {
      const { entries, length } = batches[gone]!
      if (this.length <= most && entries.at(-1)!.seq > seen) break
      this.length -= length
      gone++
    }
    if (gone === 0) return
    batches.splice(0, gone)
    this.#whole = false
  }

  stopWaiting(): void {
    this.waits = false
    this.#trim(1)
  }

  push(entries: readonly Entry[], length: number): void {
    this.#batches.push({ entries, length })
    this.length += length
    // Waiting readers start with the last batch.
    this.#trim(1)
  }

  // Kept longer, entries would survive two collections of V8's young generation, and die in the old one. Among many readers, finding the slowest is
  // costly: then entries stay until the next batch.
  taken(): void {
    if (this.#batches.length > 0 && this.readers.size <= fewReaders) this.#trim(0)
  }

  after(seq: number): Entry[] | undefined {
    const batches = this.#batches
    const at = batches.findLastIndex(({ entries: [first] }) => (first!.firstSeq ?? first!.seq) <= seq + 1)
    if (at < 0) return undefined
    const { entries } = batches[at]!
    const rest = entries.slice(indexAfter(entries, seq))
    return at === batches.length - 1 ? rest : rest.concat(...batches.slice(at + 1).map((batch) => batch.entries))
  }
}

/* Entries with gaps between their `seq`s: those of compacted runs. */

/** The index of the first entry after this `seq`. O(1) without gaps. */
export function indexAfter(entries: readonly Entry[], seq: number): number {
  const guess = seq + 1 - (entries[0]?.seq ?? 0)
  if (guess <= 0) return 0
  if (entries[guess]?.seq === seq + 1) return guess
  let low = 0
  let high = Math.min(entries.length, guess)
  while (low < high) {
    const middle = (low + high) >> 1
    if (entries[middle]!.seq <= seq) low = middle + 1
    else high = middle
  }
  return low
}

/** Throws `compacted` if a cursor is inside merged deltas: its remainder cannot be delivered. `entries` follow it. */
export function refuseMerged(run: string, after: number, entries: readonly Entry[]): void {
  const found = after === 0 || entries[0]?.firstSeq === undefined ? undefined : mergedAround(after, entries)
  if (found === undefined) return
  const { first, last } = found
  const what = `run ${run} was compacted: its entries ${first} to ${last} are merged, and ${after} is among them`
  throw new MillraceError('compacted', `${what}. Use ${first - 1} or ${last}, or read from the start`, { status: 410 })
}
