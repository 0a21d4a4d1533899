/**
 * Puts texts into the full-text index. One that stands whole in the row that is being read goes there at once. Others wait in
 * `indexed_later`, and are read again in pieces: long ones, and those whose deltas came in several rows.
 */
import { isDelta, type Entry } from '../../part/entry.ts'
import type { SearchHit } from '../../part/records.ts'
import { decodeEntries } from '../encode.ts'
import { entryText, spaced, textKinds } from './entry-texts.ts'
import { pieceLength } from './piece-reader.ts'
import type { Statements } from './statements.ts'

/** Characters of the log that are parsed for one text: about 0.3 ms. */
const mostParsed = 64 * 1024

export function indexText(
  statements: Pick<Statements, 'addText' | 'addWords'>,
  { run, seq, start, kind }: { run: number; seq: number; start: number; kind: SearchHit['kind'] },
  text: string,
): void {
  if (text.trim() === '') return
  statements.addWords.run(statements.addText.run(run, seq, start, kind).lastInsertRowid, spaced(text))
}

/** The text of an entry, if it has one itself. `length`: that of its line. */
export function indexEntry(statements: Statements, run: number, entry: Entry, length: number): void {
  const kind = textKinds[entry.type]
  if (kind === undefined || kind === 'text' || kind === 'reasoning') return
  if (length >= pieceLength) statements.addLater.run(run, entry.seq)
  else indexText(statements, { run, seq: entry.seq, start: 0, kind }, entryText(entry))
}

/** A text that came in deltas and began with entry `seq`. `end` is its last entry, whose line stands `at` this character of the row. */
export function indexBlock(
  statements: Statements,
  { run, seq }: { run: number; seq: number },
  end: Entry & { id: string },
  { row, at }: { row: string; at: number },
): void {
  const kind = end.type === 'text-end' ? 'text' : 'reasoning'
  const text = textIn(row, at, seq, `${kind}-delta`, end.id)
  if (text === undefined) statements.addLater.run(run, seq)
  else indexText(statements, { run, seq, start: 0, kind }, text)
}

/** Undefined if the row does not have all of it, if it has more than one piece, or if a line is damaged. */
function textIn(row: string, end: number, seq: number, type: Entry['type'], id: string): string | undefined {
  const start = row.lastIndexOf(`{"seq":${seq},`, end)
  if (start < 0 || end - start > mostParsed) return undefined
  let text = ''
  try {
    for (const entry of decodeEntries([row.slice(start, end - 1)])) {
      if (isDelta(entry) && entry.type === type && entry.id === id) text += entry.delta
    }
  } catch {
    return undefined
  }
  return text.length < pieceLength ? text : undefined
}
