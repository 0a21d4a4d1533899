/** Encodes and decodes entries and messages for storage. */
import { createEntryLines } from '../part/entry-lines.ts'
import { isDelta, toReadable, type Entry } from '../part/entry.ts'
import { MillraceError, messageOf } from '../part/error.ts'
import { recordable } from '../part/json.ts'

/**
 * Encodes entries as JSON lines. Throws `bad-entry` for values that JSON cannot represent (a BigInt, a cycle). `toLine`: what encodes
 * this run's entries from tick to tick.
 */
export function encodeEntries(run: string, entries: readonly Entry[], toLine = createEntryLines()): string {
  let lines = ''
  for (const entry of entries) {
    try {
      lines = toLine(entry, lines)
    } catch (error) {
      const place = `entry ${entry.seq} (${entry.type}) of run ${run}`
      throw new MillraceError('bad-entry', `${place} cannot be encoded as JSON`, {
        detail: messageOf(error),
        cause: error,
      })
    }
  }
  return lines
}

/** Decodes several texts at once. JSON never contains a raw line break, so they can be parsed as one array. */
export function decodeEntries(texts: readonly string[]): Entry[] {
  const entries = JSON.parse(`[${texts.join('\n').replaceAll('\n', ',')}]`) as Entry[]
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i]!
    if (!isDelta(entry) || entry.providerMetadata !== undefined) entries[i] = toReadable(entry)
  }
  return entries
}

/** Decodes one line. Undefined if it is damaged. */
export function decodeLine(line: string): Entry | undefined {
  try {
    return decodeEntries([line])[0]
  } catch {
    return undefined
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

/** Decodes a kept view. It is made of entries, whose values may be nested as deep as values may be, and holds them somewhat deeper. */
export function decodeView(text: string): unknown {
  return JSON.parse(text)
}
