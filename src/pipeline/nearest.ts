/** The candidate that `word` was probably meant to be, or undefined when none is near enough to be worth naming. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  // Distances cost the product of both lengths, for every candidate: long words and long lists are not worth it.
  if (word.length > 60) return undefined
  // A third of the letters may be wrong: `maxStep` finds `maxSteps`, `foo` does not find `for`.
  let limit = Math.max(1, Math.floor(word.length / 3)) + 1
  let best: string | undefined
  let left = 500
  for (const candidate of candidates) {
    if (left-- === 0) break
    if (Math.abs(candidate.length - word.length) >= limit) continue
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (distance < limit) {
      limit = distance
      best = candidate
    }
  }
  return best
}

/** ` (did you mean "x"?)`, or nothing. */
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

// Optimal string alignment: a swap of neighbours is one mistake, since it is the commonest one.
function editDistance(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let cost = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, before[j - 2]! + 1)
      next.push(cost)
    }
    before = row
    row = next
  }
  return row[b.length]!
}
