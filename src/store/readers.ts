/** Readers of inboxes and of changes, for `follow`. */
import type { Change, InboxMessage } from '../part/log.ts'
import type { Puller } from './follow.ts'

/** `next` returns the first message after this one. */
export function readMessages(next: (n: number) => InboxMessage | undefined, after = 0): Puller<InboxMessage> {
  let n = after
  return {
    pull() {
      const value = next(n)
      if (!value) return 'wait'
      n = value.n
      return { value }
    },
  }
}

/** `next` returns some of the changes after this one, or none. */
export function readChanges(next: (n: number) => Change[], after = 0): Puller<Change[]> {
  let n = after
  return {
    pull() {
      const value = next(n)
      n = value.at(-1)?.n ?? n
      return value.length === 0 ? 'wait' : { value, stored: true }
    },
  }
}
