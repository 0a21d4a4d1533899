/** Limits that hold over all processes that share a store. */

/** At most `count` in `perMs` ms. After a silence all of them may be used at once; after that one every `perMs / count` ms. */
export interface Rate {
  count: number
  perMs: number
}

/** A place that is occupied. The places of a process that dies are freed with it. */
export interface Permit {
  leave(): void
}

export interface Limits {
  /** Takes one of a key's rate. Resolves with 0 if it was taken, or with how long to wait, in ms. */
  take(key: string, rate: Rate): Promise<number>
  /** Occupies one of the `most` places of a key. Resolves with undefined if none is free. */
  occupy(key: string, most: number): Promise<Permit | undefined>
}

/** Formats a time limit for messages: `50 ms`, `2 min`, `90 s`. */
export function formatLimit(ms: number): string {
  if (ms >= 60_000 && ms % 60_000 === 0) return `${ms / 60_000} min`
  if (ms >= 10_000 && ms % 1000 === 0) return `${ms / 1000} s`
  return `${ms} ms`
}
