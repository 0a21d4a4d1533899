/** A store in memory: for tests, the edge, and `--data none`. */
import type { Entry } from '../part/entry.ts'
import {
  hasEnded,
  type Appended,
  type InboxMessage,
  type Log,
  type RunIndex,
  type RunRow,
  type Store,
} from '../part/log.ts'
import { createBell } from './bell.ts'
import { checkAppend, isSameEntry } from './check-append.ts'
import { follow, type Pulled } from './follow.ts'
import { createKeptInbox } from './memory-inbox.ts'
import { fold, foldRow, limitOf, queryWords } from './run-row.ts'
import { selectEntries } from './select-entries.ts'
import { storeClosed, unknownCursor } from './store-error.ts'

interface Kept {
  row: RunRow
  /** `seq` s is at index s - 1. */
  entries: Entry[]
  /** The run is dropped when this many runs have ended. */
  goesAt?: number
}

/** Maximum number of entries per batch for a reader that catches up. */
const page = 1024
const mostGone = 1000

/**
 * Readers wake at the end of the event-loop turn, as with the SQLite store, which commits then: deltas that arrive together are
 * one batch and one write to a client's socket, instead of one write each.
 */
const later: (go: () => void) => unknown = globalThis.setImmediate ?? queueMicrotask

/**
 * Keeps runs in memory. Of the runs that have ended it keeps the last `keep` (default 100), with their messages. Concurrent runs
 * do not displace each other: a run is dropped when as many runs have ended after it as were active at its end, plus `keep`.
 * A reader that called `read` before that still gets the whole run. Entries are not copied: do not change them afterwards.
 */
export function memoryStore({ keep = 100 }: { keep?: number } = {}): Store {
  const runs = new Map<string, Kept>()
  /** Ids of ended runs, in the order in which they ended. */
  const ended: string[] = []
  let endings = 0
  /** Ids of recently dropped runs: a late reader must not wait for them as for a run that is about to start. */
  const gone = new Set<string>()
  const bell = createBell()
  const rung = new Set<string>()
  const inbox = createKeptInbox()
  let closed = false

  function append(run: string, epoch: number, given: readonly Entry[]): Appended {
    if (closed) throw storeClosed(`append to run ${run}`)
    if (given.length === 0) return 'stored'
    let kept = runs.get(run)
    const known = checkAppend(run, kept?.row, epoch, given, (entry) =>
      isSameEntry(kept!.entries[entry.seq - 1]!, entry),
    )
    if (known === 'fenced') return 'fenced'
    if (known === given.length) return 'duplicate'
    const entries = known === 0 ? given : given.slice(known)
    const row = foldRow(kept?.row, run, epoch, entries)
    if (kept) {
      kept.row = row
      for (const entry of entries) kept.entries.push(entry)
    } else {
      runs.set(run, (kept = { row, entries: [...entries] }))
      gone.delete(run)
    }
    if (rung.size === 0) later(ringAll)
    rung.add(run)
    if (hasEnded(row.status)) dropOld(run, kept)
    return 'stored'
  }

  /** Call this when a run has ended. */
  function dropOld(run: string, kept: Kept): void {
    ended.push(run)
    endings++
    kept.goesAt = endings + keep + (runs.size - ended.length)
    while ((runs.get(ended[0]!)?.goesAt ?? Infinity) <= endings) {
      const old = ended.shift()!
      // A reader that has waited since before the run started has not been woken yet.
      if (rung.has(old)) bell.ring(old)
      const threadId = runs.get(old)?.row.threadId
      runs.delete(old)
      gone.add(old)
      if (gone.size > mostGone) gone.delete(gone.values().next().value!)
      inbox.drop(old)
      const isOver = ![...runs.values()].some(({ row: other }) => other.threadId === threadId)
      if (isOver && threadId !== undefined) inbox.drop(`thread:${threadId}`)
    }
  }

  function ringAll(): void {
    const runsThatSpoke = [...rung]
    rung.clear()
    for (const run of runsThatSpoke) bell.ring(run)
  }

  const log: Log = {
    append: async (run, epoch, given) => append(run, epoch, typeof given === 'function' ? given() : given),
    claim: async (run, epoch) => {
      if (closed) throw storeClosed(`claim run ${run}`)
      const kept = runs.get(run)
      if (!kept || kept.row.epoch !== epoch || hasEnded(kept.row.status)) return false
      kept.row = { ...kept.row, epoch: epoch + 1, status: 'running' }
      return true
    },
    read(run, options = {}) {
      const { after = 0, signal } = options
      let kept = runs.get(run)
      return follow<Entry[]>({
        bell,
        key: run,
        signal,
        pause: (go) => setTimeout(go, 0),
        start() {
          let seq = after
          const pull = (): Pulled<Entry[]> => {
            if (closed) return 'end'
            kept ??= runs.get(run)
            if (!kept) return gone.has(run) ? 'end' : 'wait'
            const value = kept.entries.slice(seq, seq + page)
            seq += value.length
            const last = hasEnded(kept.row.status) && seq >= kept.row.lastSeq
            if (value.length === 0) return last ? 'end' : 'wait'
            return { value, last, stored: value.length === page }
          }
          return selectEntries({ pull }, options)
        },
      })
    },
    post: async (run, key, message) => {
      if (closed) throw storeClosed(`post to run ${run}`)
      return inbox.post(run, key, message)
    },
    inbox: (run, { after = 0, signal } = {}) =>
      follow<InboxMessage>({
        bell: inbox.bell,
        key: run,
        signal,
        pause: (go) => setTimeout(go, 0),
        start() {
          let n = after
          const pull = (): Pulled<InboxMessage> => {
            if (closed) return 'end'
            const value = inbox.next(run, n)
            if (!value) return 'wait'
            n = value.n
            return { value }
          }
          return { pull }
        },
      }),
  }

  const index: RunIndex = {
    async get(run) {
      if (closed) throw storeClosed(`get run ${run}`)
      const kept = runs.get(run)
      return kept && { ...kept.row }
    },
    async list(query = {}) {
      if (closed) throw storeClosed('list runs')
      const { agent, threadId, status, idPrefix = '', before } = query
      const words = queryWords(query.q)
      const cursor = before === undefined ? undefined : runs.get(before)
      if (before !== undefined && !cursor) throw unknownCursor(before)
      // A map keeps insertion order.
      const newestFirst = [...runs.values()].toReversed()
      const start = cursor === undefined ? 0 : newestFirst.indexOf(cursor) + 1
      return newestFirst
        .slice(start)
        .filter(
          ({ row }) =>
            (agent === undefined || row.agent === agent) &&
            (threadId === undefined || row.threadId === threadId) &&
            (status === undefined || row.status === status) &&
            row.id.startsWith(idPrefix) &&
            words.every((word) => fold(row.title ?? '').includes(word)),
        )
        .slice(0, limitOf(query))
        .map(({ row }) => ({ ...row }))
    },
  }

  return {
    log,
    runs: index,
    durable: false,
    async close() {
      // Deliver the entries of this turn.
      ringAll()
      closed = true
      bell.ringAll()
      inbox.bell.ringAll()
    },
  }
}
