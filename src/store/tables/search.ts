/**
 * Full-text search. The index finds the pieces of text that have all words, of an agent and a thread; phrases and excerpts are read from the log. It
 * runs in a thread: see `read-thread.ts`.
 */
import type { DatabaseSync } from 'node:sqlite'
import { MillraceError } from '../../part/error.ts'
import type { SearchHit, SearchQuery } from '../../part/records.ts'
import { isShown } from '../run-row.ts'
import { createPieceReader } from './piece-reader.ts'
import { spaced } from './entry-texts.ts'
import { matchAll, scopeTerms } from './index-terms.ts'

/** Newest run first, and its last text first. */
export function createSearch(db: DatabaseSync): (query: SearchQuery) => SearchHit[] {
  const pieces = createPieceReader(db)
  // The rows of the index increase with the number of the run.
  const matches = db.prepare('SELECT rowid AS id FROM search WHERE search MATCH ? ORDER BY rowid DESC')
  const place = db.prepare(
    `SELECT t.run, t.seq, t.start, t.kind, r.id, r.agent, r.thread_id, r.owner, r.tenant, e.tool_name, e.timestamp
     FROM indexed_texts t JOIN runs r ON r.number = t.run JOIN indexed_events e ON e.run = t.run AND e.seq = t.seq
     WHERE t.id = ?`,
  )

  /** The hit for an indexed text; undefined if the query excludes it. */
  function hitOf(id: number, words: SearchWords, query: SearchQuery): SearchHit | undefined {
    const row = place.get(id)
    if (row === undefined) return undefined
    const { agent, threadId, kinds } = query
    const kind = row.kind as SearchHit['kind']
    if (!isShown({ owner: String(row.owner), tenant: String(row.tenant) }, query)) return undefined
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

  return (query) => {
    const { q, limit = 50 } = query
    if (!Number.isInteger(limit) || limit < 1 || limit > 1000) {
      throw new MillraceError('bad-query', 'limit must be an integer from 1 to 1000')
    }
    const words = parseSearch(q)
    if (words === undefined) return []
    const hits: SearchHit[] = []
    pieces.forget()
    const terms = scopeTerms(query)
    for (const { id } of matches.iterate([words.match, ...terms.map((term) => matchAll([term]))].join(' AND '))) {
      const hit = hitOf(Number(id), words, query)
      if (hit !== undefined && hits.push(hit) === limit) break
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

/** Parses a search: words in any order, `"a phrase"`, `word*`. */
interface SearchWords {
  /** For the full-text index. It finds more, because it ignores which words are adjacent. */
  match: string
  /** The position of the first word or phrase in a text; undefined if one is missing. */
  find(text: string): number | undefined
}

interface Term {
  words: string[]
  isPrefix: boolean
}

/** Undefined if there is no word in it. */
export function parseSearch(q: string): SearchWords | undefined {
  const terms: Term[] = []
  for (const [, phrase, word] of q.matchAll(/"([^"]*)"?|(\S+)/gu)) {
    const text = phrase ?? word!
    const words = wordsOf(text).map(({ word }) => word)
    if (words.length > 0) terms.push({ words, isPrefix: phrase === undefined && text.endsWith('*') })
  }
  if (terms.length === 0) return undefined
  const match = terms
    .flatMap(({ words, isPrefix }) =>
      words.map((word, i) => `"${word}"${isPrefix && i === words.length - 1 ? '*' : ''}`),
    )
    .join(' AND ')
  return { match, find: (text) => find(text, terms) }
}

function find(text: string, terms: readonly Term[]): number | undefined {
  // The index has found the words. Only adjacent words are checked one by one.
  if (terms.every(({ words }) => words.length === 1)) {
    const places = terms.map(({ words }) =>
      text.toLowerCase().search(new RegExp(`(?<![\\p{L}\\p{N}])${words[0]!}`, 'u')),
    )
    const first = Math.min(...places.filter((at) => at >= 0))
    if (Number.isFinite(first)) return first
  }
  return findInOrder(text, terms)
}

function findInOrder(text: string, terms: readonly Term[]): number | undefined {
  const words = wordsOf(text)
  let first: number | undefined
  for (const { words: wanted, isPrefix } of terms) {
    const found = words.findIndex((_, i) =>
      wanted.every((word, n) => {
        const there = words[i + n]?.word
        return there === word || (isPrefix && n === wanted.length - 1 && there?.startsWith(word) === true)
      }),
    )
    if (found < 0) return undefined
    const { at } = words[found]!
    first = first === undefined ? at : Math.min(first, at)
  }
  return first
}

/** The words of a text as the index has them, with their positions. */
function wordsOf(text: string): { word: string; at: number }[] {
  const words: { word: string; at: number }[] = []
  for (const { 0: run, index } of text.matchAll(/[\p{L}\p{N}\p{M}]+/gu)) {
    let from = 0
    for (const piece of spaced(run).split(' ')) {
      if (piece === '') continue
      const at = run.indexOf(piece, from)
      from = at + piece.length
      words.push({ word: plain(piece), at: index + at })
    }
  }
  return words
}

/** Without accents and case. */
function plain(word: string): string {
  return word.normalize('NFD').replace(/\p{M}/gu, '').normalize('NFC').toLowerCase()
}
