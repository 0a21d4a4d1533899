/** A store in memory: for tests, the edge, and `--data none`. */
import type { Entry } from '../part/entry.ts'
import {
  hasEnded,
  type Appended,
  type Change,
  type InboxMessage,
  type KeptView,
  type Log,
  type RunIndex,
  type Store,
  type Posted,
} from '../part/log.ts'
import { createNotifier, type Notifier } from './notifier.ts'
import { admitEntries, isSameEntry } from './check-append.ts'
import { decodeView, encodeMessage, decodeMessage } from './encode.ts'
import { createFleet } from './fleet.ts'
import { createAudit } from './audit.ts'
import { createFeedback } from './feedback.ts'
import { createTestResults } from './test-results.ts'
import { createLedger } from './ledger.ts'
import { createLimits } from './limits.ts'
import { createThreadTitles } from './thread-titles.ts'
import { createCursors, readChanges, readEntries, readMessages } from './follow.ts'
import { dueRows, listRows } from './run-query.ts'
import {
  claimRow,
  foldRow,
  isFork,
  isWanted,
  ofFork,
  publicRow,
  updateRow,
  type Origin,
  type StoredRow,
} from './run-row.ts'
import { indexAfter, refuseMerged } from './live-tail-cache.ts'
import { encodeMessages, postInOrder, type EncodedMessage } from './post-all.ts'
import { checkFork, runExists, storeClosed } from './store-error.ts'
import { isBoundToRequest } from '../async/bound-to-request.ts'

interface MemoryRun extends ChangedRun {
  row: StoredRow
  fork?: Origin
  /** As JSON text, so that no object is shared with its reader. */
  view?: { seq: number; text: string }
  /** The run is dropped when this many runs have ended. */
  dropAt?: number
}

/** Maximum entries per batch for a lagging reader. */
const page = 1024
/** Maximum number of remembered ids of dropped runs. */
const mostDropped = 1000

/**
 * Readers wake at the end of the event-loop turn, as with the SQLite store, which commits then: deltas that arrive together are one batch and one
 * write to a client's socket. In a runtime that binds timers to a request, the end of the request would cancel the wake-up, so there readers wake
 * right after the append.
 */
const later: (go: () => void) => unknown = isBoundToRequest()
  ? queueMicrotask
  : (globalThis.setImmediate ?? queueMicrotask)

/**
 * Keeps runs in memory. Of the runs that have ended it keeps the last `keep` (default 100), with their messages. Concurrent runs
 * do not displace each other: a run is dropped when as many runs have ended after it as were active at its end, plus `keep`.
 * A reader that called `read` before that still gets the whole run. Entries are not copied: do not change them afterwards.
 */
export function memoryStore({ keep = 100 }: { keep?: number } = {}): Store {
  const runs = new Map<string, MemoryRun>()
  /** Ids of ended runs, in the order in which they ended. */
  const ended: string[] = []
  let endings = 0
  /** Ids of recently dropped runs: a late reader must not wait for them as for a run that is about to start. */
  const dropped = new Set<string>()
  const entryNotifier = createNotifier()
  const changeNotifier = createNotifier()
  /** The position of the last change. */
  let position = 0
  // A new set each time, as in `sqlite/batches.ts`.
  let rung = new Set<string>()
  const inbox = createKeptInbox()
  const rows = () => Array.from(runs.values(), ({ row }) => row)
  // Only this process has run these runs, so there are no orphans.
  const fleet = createFleet({
    left: () =>
      rows()
        .filter((row) => isWanted(row, Date.now(), (key) => inbox.has(row.id, key)))
        .map(({ id }) => id),
    due: (before, limit) => dueRows(rows(), before, limit),
    hasMore: (run, seen) => inbox.next(run, seen) !== undefined,
  })
  let closed = false
  const open = createCursors(
    () => closed,
    (go) => setTimeout(go, 0),
  )

  /** Throws if the store is closed. */
  function checkOpen(what: string): void {
    if (closed) throw storeClosed(what)
  }

  const feedback = createFeedback((run) => runs.has(run))
  const hasThread = (threadId: string) => [...runs.values()].some(({ row }) => row.threadId === threadId)
  const titles = createThreadTitles(hasThread)

  function append(run: string, epoch: number, given: readonly Entry[]): Appended {
    checkOpen(`append to run ${run}`)
    if (given.length === 0) return 'stored'
    let memoryRun = runs.get(run)
    const isStored = (entry: Entry) =>
      isSameEntry(memoryRun!.entries[indexAfter(memoryRun!.entries, entry.seq - 1)]!, entry)
    const admitted = admitEntries(run, memoryRun?.row, epoch, given, isStored)
    if (typeof admitted === 'string') return admitted
    if (memoryRun) updateRow(memoryRun.row, admitted)
    else memoryRun = keepRun(foldRow(undefined, run, epoch, admitted), [])
    const { row } = memoryRun
    for (const entry of admitted) memoryRun.entries.push(entry)
    memoryRun.marks.push(++position, memoryRun.entries.length)
    if (rung.size === 0) later(notifyAppended)
    rung.add(run)
    if (hasEnded(row.status)) dropOld(run, memoryRun)
    return 'stored'
  }

  function keepView(run: string, { seq, view }: KeptView): void {
    const memoryRun = runs.get(run)
    if (memoryRun && seq >= (memoryRun.view?.seq ?? 0)) memoryRun.view = { seq, text: encodeMessage(run, 'view', view) }
  }

  function keepRun(row: StoredRow, entries: Entry[]): MemoryRun {
    const memoryRun: MemoryRun = { row, entries, marks: [0, entries.length] }
    runs.set(row.id, memoryRun)
    dropped.delete(row.id)
    return memoryRun
  }

  function fork(run: string, origin: Origin): void {
    const { source, seq } = origin
    checkOpen(`fork run ${source}`)
    const from = runs.get(source)
    const known = runs.get(run)
    checkFork(source, seq, from?.row.lastSeq)
    refuseMerged(source, seq, from!.entries.slice(indexAfter(from!.entries, seq)))
    if (known && !isFork(known.fork, origin)) throw runExists(run)
    if (known) return
    const entries = from!.entries.slice(0, indexAfter(from!.entries, seq))
    entries[0] = ofFork(entries[0]!, run, origin)
    const memoryRun = keepRun(foldRow(undefined, run, from!.row.epoch, entries), entries)
    memoryRun.fork = origin
    entryNotifier.notify(run)
    if (hasEnded(memoryRun.row.status)) dropOld(run, memoryRun)
  }

  /** Call this when a run has ended. */
  function dropOld(run: string, memoryRun: MemoryRun): void {
    ended.push(run)
    endings++
    memoryRun.dropAt = endings + keep + (runs.size - ended.length)
    while ((runs.get(ended[0]!)?.dropAt ?? Infinity) <= endings) {
      const old = ended.shift()!
      // A reader that waited since before the start of the run has not been woken yet.
      if (rung.has(old)) entryNotifier.notify(old)
      const { threadId } = runs.get(old)!.row
      runs.delete(old)
      dropped.add(old)
      if (dropped.size > mostDropped) dropped.delete(dropped.values().next().value!)
      inbox.drop(old)
      feedback.forget(old)
      if (hasThread(threadId)) continue
      inbox.drop(`thread:${threadId}`)
      titles.forget(threadId)
    }
  }

  function notifyAppended(): void {
    const appended = rung
    rung = new Set()
    for (const run of appended) entryNotifier.notify(run)
    changeNotifier.notify('')
  }

  const log: Log = {
    append: async (run, epoch, given, view) => {
      const appended = append(run, epoch, typeof given === 'function' ? given() : given)
      const toKeep = appended === 'fenced' ? undefined : view?.()
      if (toKeep !== undefined) keepView(run, toKeep)
      return appended
    },
    claim: async (run, epoch) => {
      checkOpen(`claim run ${run}`)
      const memoryRun = runs.get(run)
      const row = claimRow(memoryRun?.row, epoch)
      if (row === undefined) return false
      memoryRun!.row = row
      fleet.claimed(run)
      return true
    },
    read(run, options = {}) {
      // Looked up now: the run may be dropped before it is read.
      let memoryRun = runs.get(run)
      return open<Entry[]>(entryNotifier, run, options.signal, () => {
        return readEntries(options, (seq) => {
          memoryRun ??= runs.get(run)
          if (!memoryRun) return { entries: [], lastSeq: 0, hasEnded: dropped.has(run) }
          const { row, entries } = memoryRun
          const at = indexAfter(entries, seq)
          const next = entries.slice(at, at + page)
          refuseMerged(run, seq, next)
          return { entries: next, lastSeq: row.lastSeq, hasEnded: hasEnded(row.status) }
        })
      })
    },
    post: async (run, key, message) => (await log.postAll(run, [{ key, message }]))[0]!,
    postAll: async (run, messages) => {
      checkOpen(`post to run ${run}`)
      return postInOrder(encodeMessages(run, messages), (each) => inbox.post(run, each))
    },
    inbox: (run, { after, signal } = {}) =>
      open<InboxMessage>(inbox.notifier, run, signal, () => readMessages((n) => inbox.next(run, n), after)),
    changes: ({ after, signal } = {}) =>
      open<Change[]>(changeNotifier, '', signal, () =>
        readChanges((n) => changesAfter(runs.values(), n, page, position), after),
      ),
    position: async () => {
      checkOpen('read the position')
      return position
    },
    fork: async (source, seq, run, at, user) => fork(run, { source, seq, at, user }),
  }

  const index: RunIndex = {
    async get(run) {
      checkOpen(`get run ${run}`)
      const memoryRun = runs.get(run)
      return memoryRun && publicRow(memoryRun.row)
    },
    async list(query = {}) {
      checkOpen('list runs')
      // A map keeps insertion order.
      return listRows(rows().map(publicRow), query)
    },
    async due(before, limit = 1000) {
      checkOpen('list due runs')
      return dueRows(rows(), before, limit)
    },
    async view(run) {
      checkOpen(`get the view of run ${run}`)
      const view = runs.get(run)?.view
      return view && { seq: view.seq, view: decodeView(view.text) }
    },
    async keepView(run, seq, view) {
      checkOpen(`keep the view of run ${run}`)
      keepView(run, { seq, view })
    },
  }

  return {
    log,
    runs: index,
    fleet,
    limits: createLimits(),
    ledger: createLedger(),
    audit: createAudit(),
    feedback,
    testResults: createTestResults(),
    titles,
    durable: false,
    async close() {
      fleet.close()
      // Deliver the entries of this turn.
      notifyAppended()
      closed = true
      for (const each of [entryNotifier, changeNotifier, inbox.notifier]) each.ringAll()
    },
  }
}

/** Inboxes of runs, in memory. Messages are stored as JSON text, so that no object is shared with the poster. */
interface KeptInbox {
  readonly notifier: Notifier
  post(run: string, message: EncodedMessage): Posted
  next(run: string, after: number): InboxMessage | undefined
  has(run: string, key: string): boolean
  drop(run: string): void
}

/** Maximum number of idempotency keys to keep. They belong to no run, so they are not dropped with one. */
const keptKeys = 10_000

function createKeptInbox(): KeptInbox {
  const keys = new Set<string>()
  const runs = new Map<string, { byKey: Map<string, string>; keys: string[] }>()
  const notifier = createNotifier()
  return {
    notifier,
    post(run, { key, message, text }) {
      const messages = runs.get(run) ?? { byKey: new Map<string, string>(), keys: [] }
      runs.set(run, messages)
      if (run.startsWith('key:')) keys.add(run)
      if (keys.size > keptKeys) {
        const [oldest] = keys
        keys.delete(oldest!)
        runs.delete(oldest!)
      }
      const winner = messages.byKey.get(key)
      if (winner !== undefined) return { first: false, message: decodeMessage(winner) }
      messages.byKey.set(key, text)
      messages.keys.push(key)
      notifier.notify(run)
      return { first: true, message }
    },
    next(run, after) {
      const messages = runs.get(run)
      const key = messages?.keys[after]
      return key === undefined ? undefined : { n: after + 1, key, message: decodeMessage(messages!.byKey.get(key)!) }
    },
    has: (run, key) => runs.get(run)?.byKey.has(key) ?? false,
    drop(run) {
      runs.delete(run)
    },
  }
}

/** The changes of all kept runs, in memory. A run has only their positions; the entries are those of the run. */
interface ChangedRun {
  row: { id: string }
  entries: Entry[]
  /** Pairs of a position and the number of entries after it. The first pair is not a change, but the state at the start of the run. */
  marks: number[]
}

/** About `most` changes after this position, of all runs. `last`: the last position. */
function changesAfter(runs: Iterable<ChangedRun>, after: number, most: number, last: number): Change[] {
  const all = [...runs]
  for (let from = after; from < last;) {
    const found = all.flatMap((run) => changesBetween(run, from, from + most)).toSorted((a, b) => a.n - b.n)
    if (found.length > 0) return found
    // Changes of dropped runs are gone: continue at the next existing one.
    from = Math.min(...all.map(({ marks }) => (marks[2 * markAfter(marks, from)] ?? Infinity) - 1))
  }
  return []
}

function changesBetween({ row, entries, marks }: ChangedRun, after: number, end: number): Change[] {
  const changes: Change[] = []
  for (let i = markAfter(marks, after); 2 * i < marks.length && marks[2 * i]! <= end; i++) {
    changes.push({ n: marks[2 * i]!, run: row.id, entries: entries.slice(marks[2 * i - 1], marks[2 * i + 1]) })
  }
  return changes
}

/** The index of the first pair after a position. */
function markAfter(marks: number[], position: number): number {
  let low = 1
  let high = marks.length / 2
  while (low < high) {
    const middle = (low + high) >> 1
    if (marks[2 * middle]! <= position) low = middle + 1
    else high = middle
  }
  return low
}
