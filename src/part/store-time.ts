/** The time that all processes of a store go by. */
import type { Store } from './log.ts'

/** Epoch ms, as {@link Store.now} says. */
export function timeOf({ now }: Pick<Store, 'now'>): number {
  return now?.() ?? Date.now()
}
