/** Whether the `seq`s of a run's entries are complete: dense, or covered by the `firstSeq`s of merged deltas. */
import { isDelta, type Entry } from '../part/entry.ts'

export function createSeqOrder() {
  let last = 0
  /** Of the merged deltas that stand here: the first `seq` that they must cover, and the first that they do. */
  let series: { from: number; covers: number } | undefined

  /** Returns what is wrong with the `seq` of this entry, or undefined. */
  function check(entry: Entry): string | undefined {
    const { seq, firstSeq } = entry
    const before = last
    last = seq
    // Behind merged deltas that are complete others may stand, of later deltas. As long as they are not, what is missing may be in one
    // that lies across all of them and ends last.
    if (series !== undefined && (firstSeq === undefined || (firstSeq > before && series.covers === series.from))) {
      const { from, covers } = series
      series = undefined
      if (covers > from) return `the entries ${from} to ${covers - 1} are missing`
    }
    if (firstSeq === undefined) return seq === before + 1 ? undefined : `seq is ${seq}, expected ${before + 1}`
    if (!isDelta(entry)) return 'only a delta has firstSeq'
    if (seq <= before) return `seq is ${seq}, expected more than ${before}`
    series ??= { from: before + 1, covers: firstSeq }
    if (firstSeq < series.from || firstSeq > seq) return `firstSeq is ${firstSeq}, expected ${series.from} to ${seq}`
    series.covers = Math.min(series.covers, firstSeq)
    return undefined
  }

  return { check }
}
