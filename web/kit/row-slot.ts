/**
 * The key of a row in a virtual list. A row that comes into view takes the elements of one that has left it: while one scrolls, that costs
 * half of making new ones. Only for rows that keep no state and whose elements take no focus.
 *
 * `index`: of the row; `shown`: how many rows are in the page, one after the other.
 */
export function rowSlot(index: number, shown: number): number {
  let slots = 64
  while (slots < shown) slots *= 2
  return index % slots
}
