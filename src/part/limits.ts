/** Limits that hold over all processes that share a store. */

/** At most `count` in `perMs` ms. Who has been silent may take all of them at once; after that one every `perMs / count` ms. */
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
