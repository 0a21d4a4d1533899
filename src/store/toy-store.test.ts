/**
 * How small a store may be: one that keeps everything in memory and for ever passes the whole contract. What every store needs is
 * imported: the checks, the fold of a row, readers, and the fleet of one process.
 */
import type { Entry } from '../part/entry.ts'
import {
  hasEnded,
  type Appended,
  type Change,
  type InboxMessage,
  type KeptView,
  type Log,
  type Store,
} from '../part/log.ts'
import { createNotifier } from './notifier.ts'
import { admitEntries, isSameEntry } from './check-append.ts'
import { decodeMessage, decodeView, encodeMessage } from './encode.ts'
import { createFleet } from './fleet.ts'
import { createCursors, readChanges, readEntries, readMessages } from './follow.ts'
import { indexAfter, refuseMerged } from './live-tail-cache.ts'
import { encodeMessages, postInOrder } from './post-all.ts'
import { dueRows, listRows } from './run-query.ts'
import { claimRow, foldRow, isFork, isWanted, ofFork, publicRow, type Origin, type StoredRow } from './run-row.ts'
import { checkFork, runExists, storeClosed } from './store-error.ts'
import { storeContract } from './store.contract.ts'

interface ToyRun {
  row: StoredRow
  entries: Entry[]
  view?: KeptView
  origin?: Origin
}

function toyStore(): Store {
  const runs = new Map<string, ToyRun>()
  const inboxes = new Map<string, InboxMessage[]>()
  const changes: Change[] = []
  const bell = createNotifier()
  let closed = false
  const open = createCursors(() => closed, setImmediate)

  const rows = () => Array.from(runs.values(), ({ row }) => row)
  const inboxOf = (run: string) => inboxes.get(run) ?? inboxes.set(run, []).get(run)!
  const hasMessage = (run: string, key: string) => inboxOf(run).some((each) => each.key === key)
  const left = () => rows().filter((row) => isWanted(row, Date.now(), (key) => hasMessage(row.id, key)))
  const fleet = createFleet({
    left: () => left().map(({ id }) => id),
    due: (before, limit) => dueRows(rows(), before, limit),
    hasMore: (run, seen) => inboxOf(run).length > seen,
  })

  /** Does something in one piece, as a transaction would, and wakes the readers of a key. */
  async function act<T>(wakes: string | undefined, task: () => T): Promise<T> {
    if (closed) throw storeClosed('use this store')
    const result = task()
    if (wakes !== undefined) setImmediate(bell.notify, wakes)
    return result
  }

  function add(run: string, epoch: number, entries: readonly Entry[]): Appended {
    const known = runs.get(run)
    if (entries.length === 0) return 'stored'
    const isStored = (each: Entry) => isSameEntry(known!.entries[indexAfter(known!.entries, each.seq - 1)]!, each)
    const admitted = admitEntries(run, known?.row, epoch, entries, isStored)
    if (typeof admitted === 'string') return admitted
    const row = foldRow(known?.row, run, epoch, admitted)
    runs.set(run, { ...known, row, entries: [...(known?.entries ?? []), ...admitted] })
    changes.push({ n: changes.length + 1, run, entries: [...admitted] })
    setImmediate(bell.notify, 'changes')
    return 'stored'
  }

  function keep(run: string, { seq, view }: KeptView): void {
    const known = runs.get(run)
    const text = encodeMessage(run, 'view', view)
    if (known && seq >= (known.view?.seq ?? 0)) known.view = { seq, view: decodeView(text) }
  }

  const log: Log = {
    append: (run, epoch, batch, view) =>
      act(`run ${run}`, () => {
        const appended = add(run, epoch, typeof batch === 'function' ? batch() : batch)
        const toKeep = appended === 'fenced' ? undefined : view?.()
        if (toKeep) keep(run, toKeep)
        return appended
      }),
    claim: (run, epoch) =>
      act(undefined, () => {
        const row = claimRow(runs.get(run)?.row, epoch)
        if (row) runs.get(run)!.row = row
        if (row) fleet.claimed(run)
        return row !== undefined
      }),
    read: (run, options = {}) =>
      open(bell, `run ${run}`, options.signal, () =>
        readEntries(options, (after) => {
          const { row, entries = [] } = runs.get(run) ?? {}
          const at = indexAfter(entries, after)
          refuseMerged(run, after, entries.slice(at))
          return {
            entries: entries.slice(at, at + 1000),
            hasEnded: row !== undefined && hasEnded(row.status),
            lastSeq: row?.lastSeq ?? 0,
          }
        }),
      ),
    post: async (run, key, message) => (await log.postAll(run, [{ key, message }]))[0]!,
    postAll: (run, messages) =>
      act(`inbox ${run}`, () =>
        postInOrder(encodeMessages(run, messages), ({ key, message, text }) => {
          const winner = inboxOf(run).find((each) => each.key === key)
          if (winner) return { first: false, message: winner.message }
          inboxOf(run).push({ n: inboxOf(run).length + 1, key, message: decodeMessage(text) })
          return { first: true, message }
        }),
      ),
    inbox: (run, { after, signal } = {}) =>
      open(bell, `inbox ${run}`, signal, () => readMessages((n) => inboxOf(run)[n], after)),
    changes: ({ after, signal } = {}) =>
      open(bell, 'changes', signal, () => readChanges((n) => structuredClone(changes.slice(n, n + 1000)), after)),
    position: () => act(undefined, () => changes.length),
    fork: (source, seq, run, time, user) =>
      act(`run ${run}`, () => {
        const [from, known] = [runs.get(source), runs.get(run)]
        checkFork(source, seq, from?.row.lastSeq)
        const origin = { source, seq, at: time, user }
        if (known && !isFork(known.origin, origin)) throw runExists(run)
        if (known) return
        const at = indexAfter(from!.entries, seq)
        refuseMerged(source, seq, from!.entries.slice(at))
        const entries = from!.entries.slice(0, at).map((each) => ofFork(each, run, origin))
        runs.set(run, { row: foldRow(undefined, run, from!.row.epoch, entries), entries, origin })
      }),
  }

  return {
    durable: false,
    fleet,
    log,
    runs: {
      get: (run) => act(undefined, () => runs.get(run) && publicRow(runs.get(run)!.row)),
      list: (query = {}) => act(undefined, () => listRows(rows().map(publicRow), query)),
      due: (before, limit = 1000) => act(undefined, () => dueRows(rows(), before, limit)),
      view: (run) => act(undefined, () => structuredClone(runs.get(run)?.view)),
      keepView: (run, seq, view) => act(undefined, () => keep(run, { seq, view })),
    },
    async close() {
      closed = true
      fleet.close()
      bell.ringAll()
    },
  }
}

storeContract('toy', toyStore, { hasLedger: false })
