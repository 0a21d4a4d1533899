/** Entries and messages ↔ the text that is stored. */
import { isDelta, toReadable, type Entry } from '../part/entry.ts'
import { MillraceError, messageOf } from '../part/error.ts'
import { recordable } from '../part/json.ts'

/** JSON lines. Throws `bad-entry` for what JSON cannot hold (a BigInt, a cycle). */
export function encodeEntries(run: string, entries: readonly Entry[]): string {
  let lines = ''
  for (const entry of entries) {
    try {
      lines += lines === '' ? JSON.stringify(entry) : `\n${JSON.stringify(entry)}`
    } catch (error) {
      const place = `entry ${entry.seq} (${entry.type}) of run ${run}`
      throw new MillraceError('bad-entry', `${place} is not JSON`, { detail: messageOf(error), cause: error })
    }
  }
  return lines
}

/** The reverse, for several texts at once: JSON never holds a raw line break, so they can be parsed as one array. */
export function decodeEntries(texts: readonly string[]): Entry[] {
  const entries = JSON.parse(`[${texts.join('\n').replaceAll('\n', ',')}]`) as Entry[]
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i]!
    if (!isDelta(entry) || entry.providerMetadata !== undefined) entries[i] = toReadable(entry)
  }
  return entries
}

/** A message as JSON; nothing is `null`. Throws `bad-message` for what JSON cannot hold. */
export function encodeMessage(run: string, key: string, message: unknown): string {
  try {
    return JSON.stringify(message) ?? 'null'
  } catch (error) {
    const place = `message ${key} for run ${run}`
    throw new MillraceError('bad-message', `${place} is not JSON`, { detail: messageOf(error), cause: error })
  }
}

/** The reverse. */
export function decodeMessage(text: string): unknown {
  return recordable(JSON.parse(text))
}
