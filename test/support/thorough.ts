/** How much of what could be repeated without end is tried. `MILLRACE_THOROUGH=1`: all that is written in the tests; else a part of it. */
const isThorough = process.env['MILLRACE_THOROUGH'] === '1'

/** So many times, or a part of them. */
export const often = (times: number, part = 8): number => (isThorough ? times : Math.ceil(times / part))

/** All of them, or each `part`-th, from another one on for another `from`, and the last. */
export function someOf<T>(all: readonly T[], from = 0, part = 5): T[] {
  if (isThorough) return [...all]
  return all.filter((_, i) => i % part === from % part || i === all.length - 1)
}

/** Of the places 1 to `count`, those of {@link someOf}. */
export const placesOf = (count: number, from?: number, part?: number): number[] =>
  someOf(
    Array.from({ length: count }, (_, i) => i + 1),
    from,
    part,
  )
