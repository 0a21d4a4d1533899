/**
 * Caches the latest entries of a run for readers that keep up: they get the appended entries themselves, without a read from
 * the database. The cache is bounded whatever the readers do; a reader that lags further reads the database.
 */
import type { Entry } from '../part/entry.ts'
import { indexAfter } from './merged.ts'

/** Maximum size in characters of JSON; takes about 20 % more memory. */
const most = 128 * 1024

/** The position of a reader. */
export interface Position {
  seq: number
}

export interface Recent {
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
}

export function createRecent(): Recent {
  const readers = new Set<Position>()
  const batches: { entries: readonly Entry[]; length: number }[] = []
  /** Whether the first batch is still cached. */
  let whole = true
  // Plain fields: an object with getters of its own takes four times the memory.
  const recent = { readers, waits: true, stopWaiting, length: 0, push, after }

  /**
   * Until the first reader arrives, keeps everything up to the limit, because that reader starts at the beginning. After
   * that, keeps at least the last batch: new and waiting readers start with it.
   */
  function trim(): void {
    if (whole && recent.waits && recent.length <= most) return
    let seen = Infinity
    for (const { seq } of readers) seen = Math.min(seen, seq)
    let gone = 0
    while (gone < batches.length - 1) {
      const { entries, length } = batches[gone]!
      if (recent.length <= most && entries.at(-1)!.seq > seen) break
      recent.length -= length
      gone++
    }
    if (gone === 0) return
    batches.splice(0, gone)
    whole = false
  }

  function stopWaiting(): void {
    recent.waits = false
    trim()
  }

  function push(entries: readonly Entry[], length: number): void {
    batches.push({ entries, length })
    recent.length += length
    trim()
  }

  function after(seq: number): Entry[] | undefined {
    const at = batches.findLastIndex(({ entries: [first] }) => (first!.firstSeq ?? first!.seq) <= seq + 1)
    if (at < 0) return undefined
    const { entries } = batches[at]!
    const rest = entries.slice(indexAfter(entries, seq))
    return at === batches.length - 1 ? rest : rest.concat(...batches.slice(at + 1).map((batch) => batch.entries))
  }

  return recent
}
