/** Which pair is measured when, and how ratios are taken from what was measured. Pure. */
import type { ResultRow, Sample } from './scenario.ts'

/** One measurement of a pair: a row, and the reference on a server of this pair's own. */
export interface Turn {
  pair: number
  /** From 1; a warm-up has 0. */
  round: number
  referenceFirst: boolean
}

/**
 * Every pair has the same number of warm-ups and of rounds. Each round begins with the next pair. Who of a pair is measured
 * first alternates from round to round.
 */
export function schedule(pairs: number, { warmUps, rounds }: { warmUps: number; rounds: number }): Turn[] {
  return Array.from({ length: warmUps + rounds }, (_, n) =>
    Array.from({ length: pairs }, (__, i): Turn => {
      const pair = (i + n) % pairs
      return { pair, round: Math.max(0, n - warmUps + 1), referenceFirst: (pair + n) % 2 === 0 }
    }),
  ).flat()
}

export interface Spread {
  median: number
  least: number
  most: number
}

/** The ratios of a row's samples to the reference's sample of the same round; undefined if there is none. */
export function ratioOf(row: ResultRow, base: Sample[], key: string): Spread | undefined {
  return spreadOf(ratiosOf(row, base, key))
}

/** One for each round; NaN where either was not measured. */
export function ratiosOf({ samples, beside }: ResultRow, base: Sample[], key: string): number[] {
  return samples.map((sample, i) => (sample[key] ?? Number.NaN) / ((beside ?? base)[i]?.[key] ?? Number.NaN))
}

export function spreadOf(values: readonly number[]): Spread | undefined {
  const finite = values.filter((value) => Number.isFinite(value))
  if (finite.length === 0) return undefined
  return { median: median(finite), least: Math.min(...finite), most: Math.max(...finite) }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
