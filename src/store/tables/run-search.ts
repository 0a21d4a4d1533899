/**
 * Lists of runs by words. The full-text index is read from its newest run on, only as far as the page needs. The newest runs may not be in it yet: of
 * those the titles are looked at.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { RunQuery, RunRow } from '../../part/log.ts'
import { fold, limitOf, queryWords, sortedPage, unsorted } from '../run-query.ts'
import type { RunTable } from '../sqlite/runs.ts'
import { isTitleRow, matchAll, runOfRow, scopeTerms, titleMatch, titleRow } from './index-terms.ts'
import { parseSearch } from './search.ts'

/** Runs that are looked at together. */
const together = 64
/** Runs among which those are that are not in the index. The first so many that are all in it end the look. */
const newest = 256

/** More than there are. */
const mostRuns = 2 ** 32

/** A run that may fit: by a text, or by its title. */
interface Candidate {
  number: number
  isText: boolean
}

export function hasWords({ q, search }: RunQuery): boolean {
  return queryWords(q).length + queryWords(search).length > 0
}

/** Lists runs, also by words and sorted. */
export function createRunList(db: DatabaseSync, runs: RunTable): (query: RunQuery) => RunRow[] {
  const search = createRunSearch(db, runs)
  const list = (query: RunQuery) => (hasWords(query) ? search(query) : runs.list(query))
  return (query) => {
    if (query.sort === undefined) return list(query)
    const last = query.before === undefined ? undefined : runs.get(query.before)
    return sortedPage(query, list(unsorted(query)), last)
  }
}

export function createRunSearch(db: DatabaseSync, runs: RunTable): (query: RunQuery) => RunRow[] {
  const hits = db.prepare('SELECT rowid AS id FROM search WHERE search MATCH ? AND rowid < ? ORDER BY rowid DESC')
  const hitOf = db.prepare(
    'SELECT rowid AS id FROM search WHERE search MATCH ? AND rowid >= ? AND rowid < ? ORDER BY rowid DESC LIMIT 1',
  )
  const outside = db.prepare(
    `SELECT r.number, f.run IS NULL AS is_outside
     FROM runs r LEFT JOIN indexed_runs f ON f.run = r.number WHERE r.number < ? ORDER BY r.number DESC LIMIT ${newest}`,
  )

  /** Of these runs, or of all. */
  function* indexed(match: string, before: number, few: readonly number[] | undefined): Generator<Candidate> {
    if (few === undefined) {
      for (const { id } of hits.iterate(match, titleRow(before))) yield toCandidate(Number(id))
      return
    }
    for (const number of few) {
      if (number >= before) continue
      const hit = hitOf.get(match, titleRow(number), titleRow(number + 1))
      if (hit !== undefined) yield toCandidate(Number(hit.id))
    }
  }

  function* notIndexed(before: number): Generator<Candidate> {
    for (let from = before; ;) {
      const some = outside.all(from)
      for (const { number, is_outside: isOutside } of some)
        if (isOutside === 1) yield { number: Number(number), isText: false }
      if (some.length < newest || !some.some(({ is_outside: isOutside }) => isOutside === 1)) return
      from = Number(some.at(-1)!.number)
    }
  }

  return (query) => {
    const limit = limitOf(query)
    const before = query.before === undefined ? mostRuns : runs.numberOf(query.before, query)
    const [ofTitle, ofTexts] = [queryWords(query.q), queryWords(query.search)]
    const fits = (row: RunRow, isText: boolean): boolean => {
      const title = fold(row.title ?? '')
      const isIn = (words: readonly string[]) => words.every((word) => title.includes(word))
      return isIn(ofTitle) && (isText || isIn(ofTexts))
    }

    function select(candidates: Iterable<Candidate>): Map<number, RunRow> {
      const found = new Map<number, RunRow>()
      let some = new Map<number, boolean>()
      const look = (): boolean => {
        for (const [number, row] of runs.among(query, [...some.keys()])) {
          if (fits(row, some.get(number)!)) found.set(number, row)
          if (found.size === limit) return true
        }
        some = new Map()
        return false
      }
      for (const { number, isText } of candidates) {
        // The texts of a run come before its title.
        some.set(number, isText || some.get(number) === true)
        if (some.size === together && look()) return found
      }
      look()
      return found
    }

    const found = new Map([...select(notIndexed(before)), ...select(indexed(matchOf(query), before, runs.few(query)))])
    return [...found]
      .sort(([a], [b]) => b - a)
      .slice(0, limit)
      .map(([, row]) => row)
  }
}

function toCandidate(row: number): Candidate {
  return { number: runOfRow(row), isText: !isTitleRow(row) }
}

/** Finds what may fit. */
function matchOf({ q, search, agent, threadId, owner, tenant }: RunQuery): string {
  const [ofTitle, ofTexts] = [queryWords(q), queryWords(search)]
  const texts = parseSearch(search ?? '')?.match
  const inTitle = titleMatch(ofTexts.length > 0 ? ofTexts : ofTitle)
  const words = texts === undefined ? inTitle : `((${inTitle}) OR (${texts}))`
  return [words, ...scopeTerms({ agent, threadId, owner, tenant }).map((term) => matchAll([term]))].join(' AND ')
}
