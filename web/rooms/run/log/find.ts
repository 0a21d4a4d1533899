/** Which entries of a log hold all of some words, and what a row shows of each. */
import type { Entry } from '../../../../src/part/entry.ts'
import { summaryOf } from '../../../../src/fold/log-rows.ts'

/** Of an entry, which may be megabytes, only what a row shows. */
export interface FoundEntry extends Pick<Entry, 'seq' | 'type' | 'step' | 'timestamp'> {
  firstSeq: number
  /** Where it holds the first of the words that it says. */
  text: string
}

/** Characters of a row. */
const shown = 400
/** Of them before the words. */
const before = 40

/**
 * Looks at one entry after the other, in their order. Long texts come in pieces: a word that begins in one and ends in the next is found
 * in the latter.
 */
export function createFinder(words: string): (entry: Entry) => FoundEntry | undefined {
  const wanted = words.toLowerCase().split(/\s+/u).filter(Boolean)
  const overlap = Math.max(0, ...wanted.map(({ length }) => length - 1))
  /** The end of what the last piece of a block said. */
  let tail: { block: string; text: string } | undefined
  return (entry) => {
    const { seq, firstSeq = seq, type, step, timestamp } = entry
    const said = summaryOf(entry)
    let text = said.toLowerCase()
    if ('delta' in entry) {
      const block = `${step} ${type} ${entry.id}`
      if (tail?.block === block) text = tail.text + text
      tail = { block, text: overlap === 0 ? '' : text.slice(-overlap) }
    }
    const rest = wanted.filter((word) => !text.includes(word))
    if (rest.length > 0) {
      // Names, ids, codes: all that the row does not say in words.
      const all = JSON.stringify(entry).toLowerCase()
      if (!rest.every((word) => all.includes(word))) return undefined
    }
    return { seq, firstSeq, type, step, timestamp, text: excerpt(said, wanted) }
  }
}

function excerpt(said: string, wanted: readonly string[]): string {
  const low = said.toLowerCase()
  const at = wanted.map((word) => low.indexOf(word)).find((place) => place >= 0) ?? 0
  if (at < 2 * before) return said.slice(0, shown)
  return `…${said.slice(at - before, at - before + shown)}`
}
