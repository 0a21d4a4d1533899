/** Who sent a message into a run, and what became of it. */
import type { OutlineMark } from '../../../src/fold/outline-item.ts'

const outcomes = {
  dropped: 'not delivered',
  next: 'begins the next run',
  withdrawn: 'taken back',
} as const

/** `Ann`, `Ann, taken back`. Without a sender who is known: `message`. */
export function sentWords({ by, outcome }: Omit<NonNullable<OutlineMark['sent']>, 'at'>): string {
  return [by === undefined ? 'message' : (by.name ?? by.id), outcome && outcomes[outcome]].filter(Boolean).join(', ')
}
