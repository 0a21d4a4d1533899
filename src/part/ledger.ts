/**
 * Sums that all processes of a store share, such as the tokens of a user on a day. They are kept in books, one of each tenant: what one call adds
 * is of one book, so that a store of several machines can add it at once.
 */

/** What is added to a sum. */
export interface Amount {
  /** The name of the sum in its book. */
  key: string
  /** A whole number, negative to correct an earlier one. The sum must stay a safe integer. */
  amount: number
  /** Epoch ms from which on the sum may be dropped. Then it is 0. */
  until: number
}

/** Counts each position of a source once: the mark of the source is the last position that was counted. */
export interface Once {
  /** The name of the source in its book, such as a run's id. */
  key: string
  /** Only positions greater than the mark count. From 1. */
  position: number
  /** Epoch ms from which on the mark may be dropped. */
  until: number
}

/** Every method rejects with `store-failed` when the store fails; then it may or may not have been applied. */
export interface Ledger {
  /**
   * Adds amounts in one step, over all processes, and resolves with the sums after it, in order. With `once`, and a mark at or beyond its position, it
   * adds nothing and resolves with the sums as they are; otherwise the mark is the position then. So it may be sent again.
   */
  add(book: string, amounts: readonly Amount[], once?: Once): Promise<number[]>
  /** The sums; 0 where nothing was added. */
  read(book: string, keys: readonly string[]): Promise<number[]>
  /** The mark of a source; 0 if it has none. */
  mark(book: string, key: string): Promise<number>
}
