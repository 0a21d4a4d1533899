/**
 * One run that tabs follow. The stream brings its entries once, in order. A subscription that is elsewhere (it begins earlier or later,
 * or its tab was slow) gets what it lacks from the log, in windows, until it is where the stream is.
 */
import { pause } from '../../src/async/pause.ts'
import type { Entry } from '../../src/part/entry.ts'
import type { GoneReason } from './messages.ts'
import type { Outbox } from './outbox.ts'

export interface Subscription {
  id: number
  outbox: Outbox
  /** The last entry that it got. */
  seq: number
  /** It reads from the log. */
  isFilling: boolean
  isOver: boolean
}

/** Reads entries behind `after` and before `before`: the first of them, in order, or none if there are none. */
export type ReadWindow = (run: string, after: number, before: number) => Promise<{ entries: Entry[]; size: number }>

export interface RunFeed {
  readonly run: string
  /** The last entry that the stream brought. */
  readonly seq: number
  /** `run-end` was read. */
  readonly hasEnded: boolean
  readonly subscriptions: ReadonlySet<Subscription>
  add(id: number, outbox: Outbox, after: number): Subscription
  remove(subscription: Subscription): void
  take(entry: Entry, size: number): void
  gone(reason: GoneReason): void
}

/** After a window could not be read, in ms. */
const firstWait = 1000
const longestWait = 16_000

export function createRunFeed(run: string, start: number, readWindow: ReadWindow): RunFeed {
  const subscriptions = new Set<Subscription>()
  let seq = start
  let hasEnded = false

  async function fill(subscription: Subscription): Promise<void> {
    if (subscription.isFilling) return
    subscription.isFilling = true
    let wait = firstWait
    while (!subscription.isOver) {
      await subscription.outbox.room()
      const target = seq
      if (subscription.seq >= target) break
      try {
        const { entries, size } = await readWindow(run, subscription.seq, target + 1)
        if (subscription.isOver) return
        if (entries.length > 0) subscription.outbox.entries(subscription.id, entries, size)
        subscription.seq = entries.at(-1)?.seq ?? target
        wait = firstWait
      } catch {
        // The stream tells of a run that is gone.
        await pause(wait)
        wait = Math.min(longestWait, wait * 2)
      }
    }
    subscription.isFilling = false
  }

  function remove(subscription: Subscription): void {
    subscription.isOver = true
    subscriptions.delete(subscription)
  }

  return {
    run,
    get seq() {
      return seq
    },
    get hasEnded() {
      return hasEnded
    },
    subscriptions,
    add(id, outbox, after) {
      const subscription = { id, outbox, seq: after, isFilling: false, isOver: false }
      subscriptions.add(subscription)
      if (after < seq) void fill(subscription)
      return subscription
    },
    remove,
    take(entry, size) {
      const from = entry.firstSeq ?? entry.seq
      // Before a gap it is that of a stream that is about to be replaced.
      if (entry.seq <= seq || from > seq + 1) return
      seq = entry.seq
      if (entry.type === 'run-end') hasEnded = true
      for (const subscription of subscriptions) {
        if (subscription.isFilling || entry.seq <= subscription.seq) continue
        // It has a part of what was merged, or no room.
        if (from <= subscription.seq || !subscription.outbox.hasRoom) void fill(subscription)
        else {
          subscription.outbox.entries(subscription.id, [entry], size)
          subscription.seq = entry.seq
        }
      }
    },
    gone(reason) {
      for (const subscription of subscriptions) {
        subscription.outbox.gone(subscription.id, reason)
        remove(subscription)
      }
    },
  }
}
