import type { Entry } from '../../part/entry.ts'
import { decodeEntries, decodeLine } from '../encode.ts'

/** Decodes rows of `ticks`. What was read last is often read again: for the next text of the row, the next piece of a text. */
export function createRowDecoder(): (id: number, text: string) => Entry[] {
  let row = { id: 0, text: '', entries: [] as Entry[] }
  return (id, text) => {
    if (id !== row.id || text !== row.text) row = { id, text, entries: decode(text) }
    return row.entries
  }
}

/** If a line is damaged, the others. */
function decode(text: string): Entry[] {
  try {
    return decodeEntries([text])
  } catch {
    return text.split('\n').flatMap(decodeLine)
  }
}
