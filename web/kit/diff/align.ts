/**
 * Lays two lists beside each other by their longest common subsequence (Myers, "An O(ND) Difference Algorithm"). Items with the same
 * key stand beside each other; the others alone, those of `a` first.
 */
export type Pair<T> = readonly [a: T, b: T] | readonly [a: T, b: undefined] | readonly [a: undefined, b: T]

/** Lists that differ more than this, once their common ends are taken off, are not aligned in the middle. */
const mostDifferences = 1500

export function align<T>(a: readonly T[], b: readonly T[], keyOf: (item: T) => string): Pair<T>[] {
  const [x, y] = [a.map(keyOf), b.map(keyOf)]
  let start = 0
  while (start < x.length && start < y.length && x[start] === y[start]) start++
  let [endA, endB] = [x.length, y.length]
  while (endA > start && endB > start && x[endA - 1] === y[endB - 1]) {
    endA--
    endB--
  }
  const pairs: Pair<T>[] = []
  for (let i = 0; i < start; i++) pairs.push([a[i]!, b[i]!])
  let [i, j] = [start, start]
  const alone = (untilA: number, untilB: number) => {
    while (i < untilA) pairs.push([a[i++]!, undefined])
    while (j < untilB) pairs.push([undefined, b[j++]!])
  }
  for (const [atA, atB] of common(x.slice(start, endA), y.slice(start, endB))) {
    alone(start + atA, start + atB)
    pairs.push([a[i++]!, b[j++]!])
  }
  alone(endA, endB)
  while (i < a.length) pairs.push([a[i++]!, b[j++]!])
  return pairs
}

/** The places of a longest common subsequence. None if the lists differ too much. */
function common(x: readonly string[], y: readonly string[]): [atX: number, atY: number][] {
  const [n, m] = [x.length, y.length]
  const most = Math.min(n + m, mostDifferences)
  const size = 2 * most + 3
  const middle = most + 1
  const furthest = new Int32Array(size)
  const trace: Int32Array[] = []
  for (let d = 0; d <= most; d++) {
    trace.push(furthest.slice(middle - d - 1, middle + d + 2))
    for (let k = -d; k <= d; k += 2) {
      const isDown = k === -d || (k !== d && furthest[middle + k - 1]! < furthest[middle + k + 1]!)
      let at = isDown ? furthest[middle + k + 1]! : furthest[middle + k - 1]! + 1
      while (at < n && at - k < m && x[at] === y[at - k]) at++
      furthest[middle + k] = at
      if (at >= n && at - k >= m) return back(trace, n, m)
    }
  }
  return []
}

function back(trace: readonly Int32Array[], n: number, m: number): [number, number][] {
  const found: [number, number][] = []
  let [at, other] = [n, m]
  for (let d = trace.length - 1; d >= 0; d--) {
    const before = trace[d]!
    const read = (k: number) => before[k + d + 1]!
    const k = at - other
    const isDown = k === -d || (k !== d && read(k - 1) < read(k + 1))
    const lastK = isDown ? k + 1 : k - 1
    const last = d === 0 ? 0 : read(lastK)
    const lastOther = d === 0 ? 0 : last - lastK
    while (at > last && other > lastOther) found.push([--at, --other])
    if (d > 0) [at, other] = [last, lastOther]
  }
  return found.reverse()
}
