/**
 * What a call says of itself while it goes on: a `tool-result` with `preliminary`, or for a step without a tool call a `data` of the name `progress`. A
 * later one takes the place of the one before.
 */
import type { Entry } from '../part/entry.ts'

/** The name of the `data`. */
export const progressName = 'progress'

/** In one line. Undefined for other entries, and for results so far that are no text. */
export function progressWords(entry: Entry): string | undefined {
  const words = saidIn(entry)
  return typeof words === 'string' && words !== '' ? words.replaceAll(/\s+/gu, ' ') : undefined
}

function saidIn(entry: Entry): unknown {
  if (entry.type === 'tool-result') return entry.preliminary === true ? entry.result : undefined
  return entry.type === 'data' && entry.name === progressName && entry.transient === true ? entry.data : undefined
}
