/** Full-text search. The index finds the pieces of text with all words; phrases and excerpts are read from the log. */
import type { DatabaseSync } from 'node:sqlite'
import { MillraceError } from '../../part/error.ts'
import type { SearchHit, SearchQuery } from '../../part/records.ts'
import { createPieceReader } from './piece-reader.ts'
import { parseSearch, type SearchWords } from './search-words.ts'

/** Matches that are asked for at once: more each time, because the index of a beginning of a word is read anew for each. */
const [firstPage, longestPage] = [256, 8192]
/** ms after which other work has its turn: a phrase of common words is looked for in many texts. */
const sliceLength = 5

export interface SearchContext {
  /** Runs a read; failures become `store-failed`. */
  reading<T>(read: () => T): T
  /** Awaited between two slices. */
  rest(): Promise<void>
  clock?: () => number
}

export function createSearch(
  db: DatabaseSync,
  { reading, rest, clock = () => performance.now() }: SearchContext,
): (query: SearchQuery) => Promise<SearchHit[]> {
  const pieces = createPieceReader(db)
  // The rowids of the index grow with time.
  const matches = db.prepare(
    'SELECT rowid AS id FROM search WHERE search MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT +?',
  )
  const place = db.prepare(
    `SELECT t.run, t.seq, t.start, t.kind, r.id, r.agent, r.thread_id, e.tool_name, e.timestamp
     FROM indexed_texts t JOIN runs r ON r.number = t.run JOIN indexed_events e ON e.run = t.run AND e.seq = t.seq
     WHERE t.id = ?`,
  )

  /** What a text that the index has found is to who searches: undefined if it is not what is wanted. */
  function hitOf(id: number, words: SearchWords, { agent, threadId, kinds }: SearchQuery): SearchHit | undefined {
    const row = place.get(id)
    if (row === undefined) return undefined
    const kind = row.kind as SearchHit['kind']
    if (agent !== undefined && row.agent !== agent) return undefined
    if (threadId !== undefined && row.thread_id !== threadId) return undefined
    if (kinds !== undefined && !kinds.includes(kind)) return undefined
    const text = pieces.at(Number(row.run), Number(row.seq), Number(row.start))?.text ?? ''
    const at = words.find(text)
    if (at === undefined) return undefined
    const hit: SearchHit = {
      run: String(row.id),
      threadId: String(row.thread_id),
      seq: Number(row.seq),
      kind,
      excerpt: excerptOf(text, at),
      timestamp: Number(row.timestamp),
    }
    if (row.tool_name !== null) hit.toolName = String(row.tool_name)
    return hit
  }

  return async (query) => {
    const { q, limit = 50 } = query
    if (!Number.isInteger(limit) || limit < 1 || limit > 1000) {
      throw new MillraceError('bad-query', 'limit must be an integer from 1 to 1000')
    }
    const words = parseSearch(q)
    if (words === undefined) return []
    const hits: SearchHit[] = []
    let before = Number.MAX_SAFE_INTEGER
    let since = clock()
    pieces.forget()
    for (let size: number = firstPage; ; size = Math.min(size * 2, longestPage)) {
      const page = reading(() => matches.all(words.match, before, size)).map(({ id }) => Number(id))
      for (const id of page) {
        const hit = reading(() => hitOf(id, words, query))
        if (hit !== undefined && hits.push(hit) === limit) return hits
        if (clock() - since < sliceLength) continue
        await rest()
        pieces.forget()
        since = clock()
      }
      if (page.length < size) return hits
      before = page.at(-1)!
    }
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
