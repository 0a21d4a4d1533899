/** Merges the deltas of a batch of a run's JSON lines. */
import type { Entry } from '../part/entry.ts'
import { decodeEntries, encodeTick } from './encode.ts'
import { seqOf } from './tables/move-rows.ts'

/** Characters of a batch: a few ms of merging and writing. Includes the text that reaches the limit. */
export const pieceLength = 64 * 1024
/** Longer lines are not parsed: they are never a model's deltas, and only their presence matters. */
const longLine = 64 * 1024

/** The merged entries as JSON lines, and the numbers of entries before and after. */
export interface MergedLines {
  text: string
  before: number
  after: number
}

/** Writes an unmerged line anew. Returns the same line if there is nothing to change. */
export interface LineRewriter {
  /** Whether the line may have to change, judged by its beginning: a long one is parsed only then. */
  wants(line: string): boolean
  rewrite(entry: Entry, line: string): string
}

/** Takes the stored texts of a batch one by one. `merge`: the run's `createCompaction`. */
export function createLineMerge(run: string, merge: (entries: readonly Entry[]) => Entry[], rewriter?: LineRewriter) {
  const lineOf = new Map<Entry, string | undefined>()
  return {
    add(text: string): void {
      for (const line of text.split('\n')) {
        const entries = toEntries(line, rewriter)
        for (const entry of entries) lineOf.set(entry, entries.length === 1 ? line : undefined)
      }
    },
    /** Merges the added lines, and resets. */
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
          // Unmerged lines stay as written, except for changes by the rewriter.
          lines.push(rewriter?.wants(line) === true ? rewriter.rewrite(entry, line) : line)
        }
      }
      addOthers()
      lineOf.clear()
      return { text: lines.join('\n'), before: entries.length, after: merged.length }
    },
  }
}

function toEntries(line: string, rewriter: LineRewriter | undefined): Entry[] {
  const isDeltas = () => /"type":"[a-z-]+-delta"/u.test(line.slice(0, 2000))
  const isLong = line.length > longLine && !isDeltas() && rewriter?.wants(line) !== true
  const seq = isLong ? seqOf(line) : undefined
  return seq === undefined
    ? decodeEntries([line])
    : [{ seq, timestamp: 0, step: '', type: 'finish' } as unknown as Entry]
}
