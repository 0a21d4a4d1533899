/** A mutant: one small fault put into the source, which a test must see. */
import { readFileSync } from 'node:fs'

export interface Change {
  /** From the root of the project. */
  file: string
  /** Whole lines, as they stand once in the file: found by their text, so that edits elsewhere do not move it. */
  original: string
  replacement: string
}

export interface Mutant extends Change {
  id: string
  /** What no longer holds with it, in one sentence. */
  breaks: string
  /** The tests known to fail with it, the cheapest first. */
  seenBy: SeenBy[]
}

export interface SeenBy {
  file: string
  test: string
}

export interface MutantList {
  seed: number
  mutants: Mutant[]
  /** What the seed offered and was not taken. */
  rejected: (Change & { why: string })[]
}

export const listFile = new URL('mutants.json', import.meta.url)

export function readList(): MutantList {
  return JSON.parse(readFileSync(listFile, 'utf8')) as MutantList
}

/** The text of the file with the fault in it. */
export function applyMutant(
  text: string,
  { id, file, original, replacement }: Omit<Mutant, 'breaks' | 'seenBy'>,
): string {
  const at = text.indexOf(original)
  const found =
    at === -1 ? 'is not there' : text.indexOf(original, at + 1) === -1 ? undefined : 'is there more than once'
  if (found !== undefined) {
    throw new Error(
      `mutant ${id}: its text ${found} in ${file}. Write its lines anew, or replace it: see "Mutants" in CONTRIBUTING.md.\n${original}`,
    )
  }
  return text.slice(0, at) + replacement + text.slice(at + original.length)
}
