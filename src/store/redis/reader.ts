/** One reader of a run: it gets cached entries if it keeps up, otherwise pages of the stream. */
import type { Entry } from '../../part/entry.ts'
import { hasEnded, type ReadOptions } from '../../part/log.ts'
import type { Pulled, Puller } from '../follow.ts'
import type { RowCache } from '../row-cache.ts'
import { refuseMerged, type Position, type LiveTail } from '../live-tail-cache.ts'
import { runDropped } from '../store-error.ts'
import { isOver, type RunHead, type Pages } from './pages.ts'
import type { Tail, LiveTails } from './tails.ts'

export interface ReaderContext {
  heads: RowCache
  tails: LiveTails
  pages: Pages
  /** Whether Redis was recently unavailable, so that missing data may still come. */
  isLate: () => boolean
}

/** `limit`: it needs no more entries. */
export function createReader(
  { heads, tails, pages, isLate }: ReaderContext,
  run: string,
  { after = 0, signal }: ReadOptions,
  limit?: number,
): Puller<Entry[]> {
  const position: Position = { seq: after }
  let joined: LiveTail | undefined
  let tail: Tail | undefined
  let seen = false
  let isThere = false
  let end: number | undefined

  function join(recent: LiveTail | undefined): void {
    if (joined === recent) return
    joined?.readers.delete(position)
    joined = recent
    joined?.readers.add(position)
    joined?.stopWaiting()
  }

  function leaveTail(): void {
    if (tail !== undefined) tails.leave(run, tail)
    tail = undefined
  }

  function take(value: Entry[], head: RunHead, stored: boolean): Pulled<Entry[]> & object {
    refuseMerged(run, position.seq, value)
    position.seq = value.at(-1)!.seq
    seen = true
    // Without a signal it ends with the entries stored at its first pull.
    end ??= signal ? Infinity : head.seq
    const { seq } = position
    return { value, stored, last: seq >= end || (isOver(head) && seq >= head.seq) }
  }

  /** From the owner's own appends, or from its messages. */
  function near(head: RunHead | undefined, recent: LiveTail) {
    join(recent)
    // The run may start later.
    if (head === undefined) return 'wait'
    if (position.seq > head.seq && !hasEnded(head.status)) {
      // The reader got entries that Redis has lost since.
      return tails
        .reach(run, position.seq)
        .then(() => tails.look(run))
        .then(() => 'again' as const)
    }
    if (position.seq >= head.seq) return hasEnded(head.status) ? 'end' : 'wait'
    const value = recent.after(position.seq)
    return value === undefined || value.length === 0 ? page() : take(value, head, false)
  }

  async function page(): Promise<Exclude<Pulled<Entry[]>, 'wait'>> {
    const read = tail
    const { head, entries } = await pages.page(run, position.seq, limit)
    // The entries now stored may not continue the ones already read.
    if (read?.isSuspect) return 'again'
    if (read !== undefined && entries.at(-1)?.seq === read.head?.seq) read.last = entries.at(-1)
    const known = Math.max(seen ? position.seq : 0, heads.get(run)?.row.lastSeq ?? tail?.head?.seq ?? 0)
    if (head === undefined && known > 0) {
      if (!isLate()) throw runDropped(run)
      await tails.reach(run, known)
      return 'again'
    }
    if (head !== undefined && entries.length > 0) return take(entries, head, true)
    if (isOver(head) || (tail === undefined && known <= position.seq)) return 'end'
    // Redis has less than was announced: the owner is about to rewrite it.
    await tails.reach(run, known)
    await tails.look(run)
    return 'again'
  }

  /** A run that has ended here may have been deleted elsewhere before it was read. */
  async function check() {
    isThere = (await pages.head(run)) !== undefined || isLate()
    if (!isThere) heads.forget(run)
    return 'again' as const
  }

  return {
    pull() {
      // First: this process may become the owner of a run of which it has read more than its own head has.
      if (tail?.error) throw tail.error
      if (tail?.isSuspect) return 'wait'
      const own = heads.get(run)
      if (own !== undefined) {
        leaveTail()
        if (!seen && !isThere && hasEnded(own.row.status)) return check()
        const { lastSeq: seq, epoch, status } = own.row
        return near({ seq, epoch, status }, own.recent)
      }
      if (signal === undefined) return page()
      tail ??= tails.join(run)
      if (tail.error) throw tail.error
      if (tail.isSuspect) return 'wait'
      return tail.isLive ? near(tail.head, tail.recent) : tail.ready.then(() => 'again' as const)
    },
    leave() {
      joined?.readers.delete(position)
      const own = heads.get(run)
      if (joined !== undefined && own?.recent === joined) heads.left(run, joined)
      leaveTail()
    },
  }
}
