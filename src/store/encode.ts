/** Encodes and decodes entries and messages for storage. */
import { createEntryLines } from '../part/entry-lines.ts'
import { isDelta, type Entry } from '../part/entry.ts'
import { MillraceError, messageOf } from '../part/error.ts'
import { recordable } from '../part/json.ts'
import { toReadable } from '../part/readable-entry.ts'
import { addEntries, blockLine, endOfBlock, isBlock } from './sqlite/delta-block.ts'

/**
 * Encodes entries as JSON lines. Throws `bad-entry` for values that JSON cannot represent (a BigInt, a cycle), and for a delta that would be
 * decoded as several. `toLine`: the run's encoder, kept from tick to tick.
 */
export function encodeEntries(run: string, entries: readonly Entry[], toLine = createEntryLines()): string {
  let lines = ''
  for (const entry of entries) {
    if (isDelta(entry) && isBlock(entry)) {
      throw new MillraceError('bad-entry', `${placeOf(run, entry)} has "deltas", but no "delta"`)
    }
    try {
      lines = toLine(entry, lines)
    } catch (error) {
      throw new MillraceError('bad-entry', `${placeOf(run, entry)} cannot be encoded as JSON`, {
        detail: messageOf(error),
        cause: error,
      })
    }
  }
  return lines
}

function placeOf(run: string, { seq, type }: Entry): string {
  return `entry ${seq} (${type}) of run ${run}`
}

/** The same in fewer lines: consecutive deltas become one line (`delta-block.ts`). */
export function encodeTick(run: string, entries: readonly Entry[], toLine = createEntryLines()): string {
  if (entries.length < 2) return encodeEntries(run, entries, toLine)
  let text = ''
  /** The index of the first entry without a line. */
  let rest = 0
  const add = (lines: string) => (text = text === '' ? lines : `${text}\n${lines}`)
  const addRest = (end: number) => {
    if (rest < end) add(encodeEntries(run, end - rest === entries.length ? entries : entries.slice(rest, end), toLine))
  }
  for (let i = 0; i < entries.length - 1;) {
    const end = endOfBlock(entries, i)
    if (end - i > 1) {
      addRest(i)
      add(blockLine(entries, i, end))
      rest = end
    }
    i = Math.max(end, i + 1)
  }
  addRest(entries.length)
  return text
}

/** Decodes several texts at once. JSON never contains a raw line break, so they can be parsed as one array. */
export function decodeEntries(texts: readonly string[], restore?: Restore): Entry[] {
  return toEntries(JSON.parse(`[${texts.join('\n').replaceAll('\n', ',')}]`) as unknown[], restore)
}

/** Adds the data that a stored entry only refers to. */
export type Restore = (stored: unknown) => unknown

function toEntries(stored: unknown[], restore: Restore | undefined): Entry[] {
  const given = stored as (Entry | undefined)[]
  let entries = given as Entry[]
  let before: Entry | undefined
  for (let i = 0; i < given.length; i++) {
    const entry = given[i]
    if (entry?.type !== undefined && isDelta(entry) && isBlock(entry)) {
      if (entries === given) entries = entries.slice(0, i)
      addEntries(entry, entries)
      before = entries.at(-1)
      continue
    }
    before = toReadable(restore === undefined ? entry : restore(entry), before)
    if (entries === given) entries[i] = before
    else entries.push(before)
  }
  return entries
}

/** Decodes one line: one entry, or a block of deltas. Empty if it is damaged. */
export function decodeLine(line: string, restore?: Restore): Entry[] {
  try {
    return toEntries([JSON.parse(line)], restore)
  } catch {
    return []
  }
}

/** Encodes a message as JSON; `undefined` becomes `null`. Throws `bad-message` for values that JSON cannot represent. */
export function encodeMessage(run: string, key: string, message: unknown): string {
  try {
    return JSON.stringify(message) ?? 'null'
  } catch (error) {
    const place = `message ${key} for run ${run}`
    throw new MillraceError('bad-message', `${place} cannot be encoded as JSON`, {
      detail: messageOf(error),
      cause: error,
    })
  }
}

/** Decodes a message. */
export function decodeMessage(text: string): unknown {
  return recordable(JSON.parse(text))
}

/** Decodes a stored view. It contains entries, whose values may have the maximum depth, so the view may be deeper. */
export function decodeView(text: string): unknown {
  return JSON.parse(text)
}
