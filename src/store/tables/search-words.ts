/** Reads what somebody searches for: words in any order, `"a phrase"`, `word*`. */
import { spaced } from './entry-texts.ts'

export interface SearchWords {
  /** For the full-text index: it finds more, because it does not know which words stand side by side. */
  match: string
  /** Where the first word or phrase stands in a text; undefined if one of them does not. */
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
  // The index has found the words. Only words that must stand side by side are looked for one by one.
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

/** The words of a text as the index has them, and where they stand. */
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
