/**
 * A run as an NDJSON file: one entry per line. Reading never throws: a crash may leave an incomplete last line, and the other
 * lines are still readable.
 */
import { toReadable, type Entry } from '../part/entry.ts'
import { messageOf } from '../part/error.ts'
import { createGrammar } from '../fold/grammar.ts'

/** A line that is not an entry. `line` counts from 1. `torn`: the incomplete last line that a crash leaves. */
export interface LineFault {
  line: number
  message: string
  torn: boolean
}

/** An incremental reader; see {@link createNdjsonReader}. */
export interface NdjsonReader {
  /** Returns the entries that this chunk completes. Chunks may be split anywhere. */
  feed(chunk: string): Entry[]
  /** Returns the entry of the last line, if it is complete but has no line break. */
  end(): Entry[]
  /** The lines so far that are not entries. */
  readonly faults: readonly LineFault[]
}

/** Reads a file in chunks of any size. Never throws: lines that are not entries are reported in `faults`, and the rest is read. */
export function createNdjsonReader(): NdjsonReader {
  const faults: LineFault[] = []
  /** Chunks of the incomplete line, joined once: appending to a long line chunk by chunk is O(N²). */
  let pieces: string[] = []
  let line = 0

  function read(text: string, torn: boolean): Entry[] {
    line++
    // The file may start with a byte order mark.
    const json = line === 1 ? text.replace(/^\uFEFF/, '') : text
    if (json.trim() === '') return []
    try {
      const value: unknown = JSON.parse(json)
      const message = faultOf(value)
      if (message === undefined) return [toReadable(value as Entry)]
      faults.push({ line, message, torn: false })
    } catch (error) {
      faults.push({ line, message: torn ? 'the line is incomplete' : messageOf(error), torn })
    }
    return []
  }

  return {
    feed(chunk) {
      const lines = chunk.split('\n')
      const rest = lines.pop()!
      const entries: Entry[] = []
      for (const text of lines) {
        pieces.push(text)
        entries.push(...read(pieces.join(''), false))
        pieces = []
      }
      if (rest !== '') pieces.push(rest)
      return entries
    },
    end() {
      const text = pieces.join('')
      pieces = []
      return text === '' ? [] : read(text, true)
    },
    faults,
  }
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

function faultOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'not an object'
  const { seq, timestamp, step, type } = value as Record<string, unknown>
  if (!Number.isSafeInteger(seq) || (seq as number) < 1) return '`seq` is not a positive integer'
  if (typeof timestamp !== 'number') return '`timestamp` is not a number'
  if (typeof step !== 'string') return '`step` is not a string'
  return typeof type === 'string' ? undefined : '`type` is not a string'
}
