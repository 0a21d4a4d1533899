/** Merges the deltas of a piece of a run that is stored as JSON lines. */
import type { Entry } from '../part/entry.ts'
import { decodeEntries, encodeTick } from './encode.ts'
import { seqOf } from './tables/move-rows.ts'

/** Characters of a piece: what can be merged and written in a few ms. The text that reaches it is included. */
export const pieceLength = 64 * 1024
/** Longer lines are not parsed: entries that long are no deltas of a model, and it only matters that they are there. */
const longLine = 64 * 1024

/** The merged entries as JSON lines, and how many there were and are. */
export interface MergedLines {
  text: string
  before: number
  after: number
}

/** Takes the stored texts of a piece one by one. `merge`: that of `createCompaction`, of the run. */
export function createLineMerge(run: string, merge: (entries: readonly Entry[]) => Entry[]) {
  const lineOf = new Map<Entry, string | undefined>()
  return {
    add(text: string): void {
      for (const line of text.split('\n')) {
        const entries = toEntries(line)
        for (const entry of entries) lineOf.set(entry, entries.length === 1 ? line : undefined)
      }
    },
    /** Merges what was added, and begins anew. */
    finish(): MergedLines {
      const entries = [...lineOf.keys()]
      const merged = merge(entries)
      const lines: string[] = []
      let others: Entry[] = []
      const addOthers = () => {
        if (others.length > 0) lines.push(encodeTick(run, others))
        others = []
      }
      for (const entry of merged) {
        const line = lineOf.get(entry)
        if (line === undefined) others.push(entry)
        else {
          addOthers()
          // What was not merged stays as it was written.
          lines.push(line)
        }
      }
      addOthers()
      lineOf.clear()
      return { text: lines.join('\n'), before: entries.length, after: merged.length }
    },
  }
}

function toEntries(line: string): Entry[] {
  const isLong = line.length > longLine && !/"type":"[a-z-]+-delta"/u.test(line.slice(0, 2000))
  const seq = isLong ? seqOf(line) : undefined
  return seq === undefined
    ? decodeEntries([line])
    : [{ seq, timestamp: 0, step: '', type: 'finish' } as unknown as Entry]
}
