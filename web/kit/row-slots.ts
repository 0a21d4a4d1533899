/**
 * The keys of rows in a virtual list: a row that comes into view takes the elements of one that has left it. While one scrolls, that costs
 * less than making new ones. Only for rows that keep no state, in a list that holds the focus itself.
 */
export interface RowSlots {
  /**
   * `first`: the index of the first row in the page; `shown`: how many rows are in it. Returns the key of a row by its index. The same
   * range gives the same keys, so that it may be called whenever the list is drawn.
   */
  place(first: number, shown: number): (index: number) => number
}

export function createRowSlots(): RowSlots {
  // It never shrinks: with another number of slots all rows change places.
  let slots = 1
  /** The index of a row in slot 0. */
  let origin = 0
  let before = { first: 0, end: 0 }
  const slotOf = (index: number) => (((index - origin) % slots) + slots) % slots

  return {
    place(first, shown) {
      if (shown > slots) slots = shown
      // When all rows are others, the first one takes the first element, so that no element moves in the page.
      if (first >= before.end || first + shown <= before.first) origin = first - slotOf(before.first)
      before = { first, end: first + shown }
      return slotOf
    },
  }
}
