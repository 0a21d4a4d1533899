/** What runs do, for polls: the log of a run is read once, and from then on only what is new in it. */
import type { Log, RunRow } from '../../part/log.ts'
import { createRunWords, statusTypes, type RunWords } from './status.ts'

/** Runs of which it is kept. */
const mostKept = 10_000

interface Known {
  words: RunWords
  /** The last entry that was read, or looked over. */
  seq: number
}

export interface KnownWords {
  /** As of the row. */
  of(log: Log, row: Pick<RunRow, 'id' | 'lastSeq'>): Promise<RunWords>
}

export function createKnownWords(): KnownWords {
  const known = new Map<string, Known>()
  return {
    async of(log, { id, lastSeq }) {
      const found = known.get(id) ?? { words: createRunWords(), seq: 0 }
      known.delete(id)
      known.set(id, found)
      if (known.size > mostKept) known.delete(known.keys().next().value!)
      if (found.seq >= lastSeq) return found.words
      for await (const batch of log.read(id, { after: found.seq, types: statusTypes })) {
        for (const entry of batch) {
          // Two polls at once read the same.
          if (entry.seq <= found.seq) continue
          found.words.apply(entry)
          found.seq = entry.seq
        }
      }
      found.seq = Math.max(found.seq, lastSeq)
      return found.words
    },
  }
}
