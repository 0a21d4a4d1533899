/** Readers of runs, of inboxes and of changes, for `follow`. */
import type { Entry } from '../part/entry.ts'
import type { Change, InboxMessage, ReadOptions } from '../part/log.ts'
import type { Puller } from './follow.ts'
import { selectEntries } from './select-entries.ts'

/** Some entries of a run, and what is known of the run. */
export interface EntryPage {
  entries: Entry[]
  /** 0 for a run without entries. */
  lastSeq: number
  hasEnded: boolean
}

/** `next` returns the entries after this `seq`, as many as a page has, in an array of the reader's own. */
export function readEntries(options: ReadOptions, next: (seq: number) => EntryPage): Puller<Entry[]> {
  let seq = options.after ?? 0
  let end: number | undefined
  return selectEntries(
    {
      pull() {
        const { entries: value, lastSeq, hasEnded } = next(seq)
        seq = value.at(-1)?.seq ?? seq
        // Without a signal it ends with what is stored when it first looks.
        end ??= options.signal ? Infinity : lastSeq
        const last = seq >= end || (hasEnded && seq >= lastSeq)
        if (value.length === 0) return last ? 'end' : 'wait'
        return { value, last, stored: seq < lastSeq }
      },
    },
    options,
  )
}

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
