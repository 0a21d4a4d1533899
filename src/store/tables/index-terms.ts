/**
 * What the full-text index has beside the words of texts, so that a search reads only what it finds:
 *
 * - with each text, the agent, the thread, the owner and the tenant of its run, as one term each;
 * - for each run, its title as all pieces of one, two and three characters: a list finds any part of a title.
 *
 * The terms begin with a character for private use, which is taken out of texts. Rows are numbered by run, so that the newest run is read first: the
 * title is the first row of a run.
 */
import { createHash } from 'node:crypto'

/** Rows of a run in the index, at most. With 2^33 runs the numbers are still exact. */
export const rowsOfRun = 2 ** 20

export const titleRow = (run: number): number => run * rowsOfRun
export const runOfRow = (row: number): number => Math.floor(row / rowsOfRun)
export const isTitleRow = (row: number): boolean => row % rowsOfRun === 0

const ofScope = '\ue000'
const ofTitle = '\ue001'
const privateTerms = /[\ue000\ue001]/gu

/** Texts must not pretend to be terms of their own. */
export function withoutTerms(text: string): string {
  return text.includes(ofScope) || text.includes(ofTitle) ? text.replace(privateTerms, ' ') : text
}

export interface Scope {
  agent?: string | undefined
  threadId?: string | undefined
  owner?: string | undefined
  tenant?: string | undefined
}

/** One term for each field that is not empty. Names may have any characters, so a term has a part of their hash. */
export function scopeTerms({ agent, threadId, owner, tenant }: Scope): string[] {
  return Object.entries({ a: agent, t: threadId, o: owner, n: tenant }).flatMap(([kind, name]) =>
    name === undefined || name === '' ? [] : [`${ofScope}${kind}${hashOf(name)}`],
  )
}

function hashOf(name: string): string {
  return createHash('sha1').update(name).digest('hex').slice(0, 14)
}

/** The pieces of a title in lower case. */
export function titleTerms(folded: string): string[] {
  const codes = codesOf(folded)
  const terms = new Set<string>()
  for (let i = 0; i < codes.length; i++) {
    for (let length = 1; length <= 3 && i + length <= codes.length; length++) terms.add(pieceOf(codes, i, length))
  }
  return [...terms]
}

/** For titles that may contain all of these, in lower case: which do is seen in the titles. */
export function titleMatch(words: readonly string[]): string {
  const terms = words.flatMap((word) => {
    const codes = codesOf(word)
    const length = Math.min(3, codes.length)
    return Array.from({ length: codes.length - length + 1 }, (_, i) => pieceOf(codes, i, length))
  })
  return matchAll([...new Set(terms)])
}

export function matchAll(terms: readonly string[]): string {
  return terms.map((term) => `"${term}"`).join(' AND ')
}

function codesOf(text: string): string[] {
  return Array.from(text, (character) => character.codePointAt(0)!.toString(36).padStart(4, '0'))
}

function pieceOf(codes: readonly string[], from: number, length: number): string {
  return ofTitle + codes.slice(from, from + length).join('')
}
