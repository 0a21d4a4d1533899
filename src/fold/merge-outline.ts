/** Puts together the items of an outline that were sent one after the other. */
import type { OutlineItem } from './outline-item.ts'

/** The `seq` of the entry with which an item begins. No other item has the same. */
export function keyOf(item: OutlineItem): number {
  return item.k === 'mark' ? item.seq : item.from
}

/** The path of the step that an item is or belongs to. */
export function placeOf(item: OutlineItem): string {
  return item.k === 'step' ? item.path : item.step
}

/** Each item as it was sent last, in the order in which they begin. */
export function mergeOutline(items: Iterable<OutlineItem>): OutlineItem[] {
  const latest = new Map<number, OutlineItem>()
  let before = 0
  let isSorted = true
  for (const item of items) {
    const key = keyOf(item)
    if (key < before && !latest.has(key)) isSorted = false
    else before = Math.max(before, key)
    latest.set(key, item)
  }
  const merged = [...latest.values()]
  return isSorted ? merged : merged.toSorted((a, b) => keyOf(a) - keyOf(b))
}

export function copyItem<T extends OutlineItem>(item: T): T {
  return item.k === 'block' && item.rate !== undefined ? { ...item, rate: [...item.rate] } : { ...item }
}
