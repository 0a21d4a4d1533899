/** The candidate most similar to `word`, or undefined if none is similar enough. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  // A distance costs the product of both lengths, for every candidate: skip long words and long lists.
  if (word.length > 60) return undefined
  // A third of the letters may be wrong: `maxStep` finds `maxSteps`, `foo` does not find `for`.
  let limit = Math.max(1, Math.floor(word.length / 3)) + 1
  let best: string | undefined
  let left = 500
  for (const candidate of candidates) {
    if (left-- === 0) break
    if (Math.abs(candidate.length - word.length) >= limit) continue
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase(), limit)
    if (distance < limit) {
      limit = distance
      best = candidate
    }
  }
  return best
}

/** ` (did you mean "x"?)`, or nothing. */
export type Hint = (word: string, candidates: Iterable<string>) => string

/** The {@link Hint} of a reported message. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const meant = nearest(word, candidates)
  return meant === undefined ? '' : ` (did you mean "${meant}"?)`
}

/** Names for a message, at most 30 of them. */
export function listNames(names: Iterable<string>): string {
  const all = [...names]
  if (all.length === 0) return 'none'
  return all.length > 30 ? `${all.slice(0, 30).join(', ')} and ${all.length - 30} more` : all.join(', ')
}

/**
 * Optimal string alignment: swapping two neighbours, the most common typo, counts as one edit. Stops early, with some
 * number >= `limit`, when the distance cannot be less than `limit`.
 */
function editDistance(a: string, b: string, limit: number): number {
  const width = b.length + 1
  let [before, row, next] = [new Uint8Array(width), new Uint8Array(width), new Uint8Array(width)]
  for (let j = 0; j < width; j++) row[j] = j
  let least = 0
  for (let i = 1; i <= a.length; i++) {
    next[0] = i
    const letter = a.charCodeAt(i - 1)
    // A swap looks two rows back.
    const leastBefore = least
    least = i
    for (let j = 1; j < width; j++) {
      const other = b.charCodeAt(j - 1)
      let cost = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (letter === other ? 0 : 1))
      const isSwap = i > 1 && j > 1 && letter === b.charCodeAt(j - 2) && a.charCodeAt(i - 2) === other
      if (isSwap) cost = Math.min(cost, before[j - 2]! + 1)
      next[j] = cost
      if (cost < least) least = cost
    }
    if (least >= limit && leastBefore >= limit) return limit
    ;[before, row, next] = [row, next, before]
  }
  return row[b.length]!
}
