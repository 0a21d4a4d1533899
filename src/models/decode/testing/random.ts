/** Random numbers with a seed, so that a difference can be repeated. */

export type Random = () => number

/** Mulberry32. */
export function seeded(seed = 1): Random {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

export function below(bound: number, random: Random): number {
  return Math.floor(random() * bound)
}

export function pick<T>(list: readonly T[], random: Random): T {
  return list[below(list.length, random)]!
}
