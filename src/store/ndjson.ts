/**
 * A run as an NDJSON file: one entry per line. Reading never throws: a crash may leave an incomplete last line, and the other
 * lines are still readable.
 */
import { isFeedbackLine, mostFeedbackLines, readFeedbackLine, type FeedbackLine } from '../part/feedback.ts'
import { entryFault, toReadable } from '../part/readable-entry.ts'
import { withSafeValues, type Entry } from '../part/entry.ts'
import { messageOf } from '../part/error.ts'
import { parseFinite } from '../part/json.ts'
import { createGrammar } from '../fold/grammar.ts'

/** A line that is not an entry. `line` counts from 1. `torn`: the incomplete last line that a crash leaves. */
export interface LineFault {
  line: number
  message: string
  torn: boolean
}

/** Options of {@link createNdjsonReader}. */
export interface NdjsonOptions {
  /** Maximum characters of a line; a longer one is a fault, and is not buffered. Default: unlimited. */
  longest?: number
  /** The lines come from a store: an entry that does not fit its type is replaced by a warning instead of being a fault. */
  isStored?: boolean
}

/** An incremental reader; see {@link createNdjsonReader}. */
export interface NdjsonReader {
  /** Returns the entries that this chunk completes. Chunks may be split anywhere. */
  feed(chunk: string): Entry[]
  /** Returns the entry of the last line, if it is complete but has no line break. */
  end(): Entry[]
  /** The lines so far that are not entries. */
  readonly faults: readonly LineFault[]
  /** The lines, from 1, of the entries that were returned last. */
  readonly lines: readonly number[]
  /** What people said of the run: an export has it behind the log. */
  readonly feedback: readonly FeedbackLine[]
}

/** Reads a file in chunks of any size. Never throws: lines that are not entries are reported in `faults`, and the rest is read. */
export function createNdjsonReader({ longest = Infinity, isStored = false }: NdjsonOptions = {}): NdjsonReader {
  const faults: LineFault[] = []
  const feedback: FeedbackLine[] = []
  /** Chunks of the incomplete line, joined once: appending to a long line chunk by chunk is O(N²). */
  let pieces: string[] = []
  let length = 0
  let line = 0
  let before: Entry | undefined
  let lines: number[] = []

  function take(piece: string): void {
    length += piece.length
    if (length > longest) pieces = []
    else if (piece !== '') pieces.push(piece)
  }

  /** Reads the completed line. */
  function read(entries: Entry[], torn: boolean): void {
    line++
    const isLong = length > longest
    const text = pieces.join('')
    pieces = []
    length = 0
    if (isLong) return void faults.push({ line, message: `the line is longer than ${longest} characters`, torn: false })
    // The file may start with a byte order mark.
    const json = line === 1 ? text.replace(/^\uFEFF/, '') : text
    if (json.trim() === '') return
    let value: unknown
    try {
      value = parseFinite(json)
    } catch (error) {
      return void faults.push({ line, message: torn ? 'the line is incomplete' : messageOf(error), torn })
    }
    if (!isStored && isFeedbackLine(value)) {
      const row = feedback.length < mostFeedbackLines ? readFeedbackLine(value) : 'there are too many lines of feedback'
      if (typeof row === 'string') faults.push({ line, message: row, torn: false })
      else feedback.push(row)
      return
    }
    const entry = isStored ? toReadable(value, before) : checked(value)
    if (typeof entry === 'string') return void faults.push({ line, message: entry, torn: false })
    before = entry
    entries.push(entry)
    lines.push(line)
  }

  return {
    feed(chunk) {
      const entries: Entry[] = []
      lines = []
      let at = 0
      for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', at)) {
        take(chunk.slice(at, end))
        read(entries, false)
        at = end + 1
      }
      if (at < chunk.length) take(at === 0 ? chunk : chunk.slice(at))
      return entries
    },
    end() {
      const entries: Entry[] = []
      lines = []
      if (length > 0) read(entries, true)
      return entries
    },
    faults,
    feedback,
    get lines() {
      return lines
    },
  }
}

/** The entry, or its fault. */
function checked(value: unknown): Entry | string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'it is not an object'
  const entry = withSafeValues(value as Entry)
  return entryFault(entry) ?? entry
}

/** Reads a whole text, or its chunks. For a file that does not fit into memory, use `createNdjsonReader`. */
export function readNdjson(source: string | Iterable<string>): { entries: Entry[]; faults: readonly LineFault[] } {
  const reader = createNdjsonReader()
  const entries: Entry[] = []
  for (const chunk of typeof source === 'string' ? [source] : source) {
    for (const entry of reader.feed(chunk)) entries.push(entry)
  }
  entries.push(...reader.end())
  return { entries, faults: reader.faults }
}

/**
 * Checks entries against the grammar and returns one message per fault; empty for a valid run. `open: true` allows a run that
 * has not ended.
 */
export function verify(entries: Iterable<Entry>, options: { open?: boolean } = {}): string[] {
  const grammar = createGrammar()
  const faults: string[] = []
  for (const entry of entries) {
    const fault = grammar.check(entry)
    if (fault !== undefined) faults.push(fault)
  }
  const missing = grammar.end(options)
  if (missing !== undefined) faults.push(missing)
  return faults
}
