/** Full-text search. The index finds the pieces of text with all words; phrases and excerpts are read from the log. */
import type { DatabaseSync } from 'node:sqlite'
import { MillraceError } from '../../part/error.ts'
import type { SearchHit, SearchQuery } from '../../part/records.ts'
import { createPieceReader } from './piece-reader.ts'
import { parseSearch } from './search-words.ts'

export function createSearch(db: DatabaseSync): (query: SearchQuery) => SearchHit[] {
  const pieces = createPieceReader(db)

  return ({ q, agent, threadId, kinds, limit = 50 }) => {
    if (!Number.isInteger(limit) || limit < 1 || limit > 1000) {
      throw new MillraceError('bad-query', 'limit must be an integer from 1 to 1000')
    }
    const words = parseSearch(q)
    if (words === undefined) return []
    const where = ['search MATCH ?']
    const values: string[] = [words.match]
    const add = (condition: string, ...given: string[]) => {
      where.push(condition)
      values.push(...given)
    }
    if (agent !== undefined) add('r.agent = ?', agent)
    if (threadId !== undefined) add('r.thread_id = ?', threadId)
    if (kinds !== undefined) add(`t.kind IN (${kinds.map(() => '?').join(', ')})`, ...kinds)
    // The rowids of the index grow with time.
    const statement = db.prepare(
      `SELECT t.run, t.seq, t.start, t.kind, r.id, r.thread_id, e.tool_name, e.timestamp
       FROM search JOIN indexed_texts t ON t.id = search.rowid JOIN runs r ON r.number = t.run
         JOIN indexed_events e ON e.run = t.run AND e.seq = t.seq
       WHERE ${where.join(' AND ')} ORDER BY search.rowid DESC`,
    )
    const hits: SearchHit[] = []
    for (const row of statement.iterate(...values)) {
      const text = pieces.at(Number(row.run), Number(row.seq), Number(row.start))?.text ?? ''
      const at = words.find(text)
      if (at === undefined) continue
      const hit: SearchHit = {
        run: String(row.id),
        threadId: String(row.thread_id),
        seq: Number(row.seq),
        kind: row.kind as SearchHit['kind'],
        excerpt: excerptOf(text, at),
        timestamp: Number(row.timestamp),
      }
      if (row.tool_name !== null) hit.toolName = String(row.tool_name)
      hits.push(hit)
      if (hits.length === limit) break
    }
    return hits
  }
}

const excerptLength = 200

/** The words around a place, in one line. */
function excerptOf(text: string, at: number): string {
  const from = Math.max(0, at - 60)
  const begin = from === 0 ? 0 : text.indexOf(' ', from) + 1 || from
  const start = begin > at ? from : begin
  const words = text
    .slice(start, start + 2 * excerptLength)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  const cut = words.length <= excerptLength ? words : words.slice(0, excerptLength - 1)
  return cut.isWellFormed() ? cut : cut.toWellFormed().replaceAll('\ufffd', '')
}
