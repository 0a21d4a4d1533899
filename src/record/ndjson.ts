/**
 * A run as a file: one entry a line. Reading never throws: after a crash the last line may be torn, and whoever reads
 * wants the rest all the same.
 */
import { toReadable, type Entry } from '../part/entry.ts'
import { messageOf } from '../part/error.ts'
import { createGrammar } from '../part/grammar.ts'

/** A line that is no entry. `line` counts from 1; `torn`: the last one, without its line break, as a crash leaves it. */
export interface LineFault {
  line: number
  message: string
  torn: boolean
}

/** A reader that is fed text; see {@link createNdjsonReader}. */
export interface NdjsonReader {
  /** The entries completed by this piece of the file, cut anywhere. */
  feed(chunk: string): Entry[]
  /** The last line, when it is whole but for its line break. */
  end(): Entry[]
  /** Every line that is no entry, so far. */
  readonly faults: readonly LineFault[]
}

/** Reads a file in pieces of any size. Never throws: what is no entry is a fault, and the rest is read. */
export function createNdjsonReader(): NdjsonReader {
  const faults: LineFault[] = []
  /** Pieces of the line not yet complete: joined once, since adding to a long line piece by piece is O(N²). */
  let pieces: string[] = []
  let line = 0

  function read(text: string, torn: boolean): Entry[] {
    line++
    // A byte order mark may stand before the first.
    const json = line === 1 ? text.replace(/^\uFEFF/, '') : text
    if (json.trim() === '') return []
    try {
      const value: unknown = JSON.parse(json)
      const message = faultOf(value)
      if (message === undefined) return [toReadable(value as Entry)]
      faults.push({ line, message, torn: false })
    } catch (error) {
      faults.push({ line, message: torn ? 'cut off in the middle' : messageOf(error), torn })
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

/** Reads a whole text, or its pieces. For a file too large for memory feed `createNdjsonReader` instead. */
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
 * What breaks the grammar, a line for each fault; empty for a sound run. `open: true` allows one that still goes on.
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
  if (!Number.isSafeInteger(seq) || (seq as number) < 1) return '`seq` is not a count from 1'
  if (typeof timestamp !== 'number') return '`timestamp` is not a number'
  if (typeof step !== 'string') return '`step` is not a text'
  return typeof type === 'string' ? undefined : '`type` is not a text'
}
