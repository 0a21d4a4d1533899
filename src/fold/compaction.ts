/**
 * Merges the deltas of a finished run. The text that people read stays the same; only its cuts into deltas are lost.
 *
 * The first delta of a block stays as it is, so that the time to the first token is known. Between two entries that are not bare deltas,
 * all further deltas of a block become one, with the `seq` and the time of the last and `firstSeq`, the `seq` of the first. No merged delta
 * is longer than `mostMerged` characters, unless a single delta was.
 */
import { isDelta, type Entry } from '../part/entry.ts'

const mostMerged = 64 * 1024

type DeltaEntry = Extract<Entry, { delta: string }>

/** Deltas of one block that become one. */
interface Group {
  first: number
  last: DeltaEntry
  pieces: string[]
}

/**
 * Returns a function that merges the deltas of consecutive entries of one run, batch by batch; deltas of two batches are not merged. Merged
 * deltas may be merged again. `bounds`: `seq`s at which other runs fork off, across which nothing is merged.
 */
export function createCompaction(bounds: ReadonlySet<number> = new Set()): (entries: readonly Entry[]) => Entry[] {
  /** Blocks that have no delta yet. */
  const fresh = new Set<string>()

  return (entries) => {
    const remaining: Entry[] = []
    const groups = new Map<string, Group>()
    let length = 0

    function flush(): void {
      const all = [...groups.values()]
      // Merged deltas of several blocks may overlap: then all of them carry `firstSeq`, otherwise none does.
      const isDense = all.every(({ first, last }) => first === last.seq)
      all.sort((a, b) => a.last.seq - b.last.seq)
      for (const { first, last, pieces } of all) remaining.push(isDense ? last : merged(first, last, pieces))
      groups.clear()
      length = 0
    }

    for (const entry of entries) {
      if (!isMergeable(entry)) {
        flush()
        note(entry, fresh)
        remaining.push(entry)
      } else {
        const key = blockKey(entry.type, entry.id, entry.step)
        if (fresh.delete(key)) {
          flush()
          remaining.push(entry)
        } else {
          length += entry.delta.length
          if (length > mostMerged) {
            flush()
            length = entry.delta.length
          }
          const group = groups.get(key)
          if (group === undefined) {
            groups.set(key, { first: entry.firstSeq ?? entry.seq, last: entry, pieces: [entry.delta] })
          } else {
            group.last = entry
            group.pieces.push(entry.delta)
          }
        }
      }
      if (bounds.has(entry.seq)) flush()
    }
    flush()
    return remaining
  }
}

function merged(firstSeq: number, { seq, timestamp, ...rest }: DeltaEntry, pieces: string[]): Entry {
  return { seq, timestamp, ...rest, firstSeq, delta: pieces.join('') }
}

/** Notes the start and the end of a block. */
function note(entry: Entry, fresh: Set<string>): void {
  const { type } = entry
  if (type === 'text-start' || type === 'reasoning-start' || type === 'tool-input-start') {
    fresh.add(blockKey(type.replace('start', 'delta'), entry.id, entry.step))
  } else if (type === 'text-end' || type === 'reasoning-end' || type === 'tool-input-end') {
    fresh.delete(blockKey(type.replace('end', 'delta'), entry.id, entry.step))
  } else if (isDelta(entry)) fresh.delete(blockKey(type, entry.id, entry.step))
}

function blockKey(type: string, id: string, step: string): string {
  return `${type}\n${step}\n${id}`
}

const mergeableKeys: ReadonlySet<string> = new Set(['seq', 'firstSeq', 'timestamp', 'step', 'type', 'id', 'delta'])

/** Whether this is a delta without further fields. */
function isMergeable(entry: Entry): entry is DeltaEntry {
  if (!isDelta(entry)) return false
  for (const key in entry) if (!mergeableKeys.has(key)) return false
  return true
}

/** The range of `seq`s of the merged deltas around a cursor. `entries` follow the cursor. */
export function mergedAround(after: number, entries: readonly Entry[]): { first: number; last: number } | undefined {
  let found: { first: number; last: number } | undefined
  for (const { seq, firstSeq } of entries) {
    // Merged deltas of several blocks may overlap. They are adjacent.
    if (firstSeq === undefined) break
    if (firstSeq <= after) found = { first: Math.min(found?.first ?? firstSeq, firstSeq), last: seq }
  }
  return found
}
