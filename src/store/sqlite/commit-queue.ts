/**
 * Group commit: all writes of one event-loop tick, or of a few ({@link createCommitTurn}), over all runs, go into one transaction. A
 * commit costs about as much as fifty inserts; grouping makes it affordable to persist entries before delivering them.
 */
import type { DatabaseSync } from 'node:sqlite'
import { MillraceError } from '../../part/error.ts'
import { isBusy, isOfValue, storeFailed, valueRefused } from '../store-error.ts'
import type { Checkpoints } from './checkpoint.ts'

export interface Write {
  /**
   * Commit one event-loop turn later, unless another write commits first. The first write of a run comes in the same turn as its model request,
   * which is sent at the end of the turn: a commit would delay the request.
   */
  yields: boolean
  /** Approximate number of pages that it changes, if more than one, without the gathered data. */
  pages?: number
  /** Called inside the transaction. If it throws a `MillraceError`, only this write fails. */
  apply(): void
  /** Called after COMMIT. */
  done(): void
  /** Called if the write was rejected or not committed: none of it is stored. */
  fail(error: MillraceError): void
}

/** Collects data over the writes of one transaction. */
export interface Gathering {
  /** At most one run is active: no other write is expected soon. */
  isAlone(): boolean
  begin(): void
  /** Before COMMIT: writes the collected data. Returns the approximate number of changed pages. */
  flush(): number
  /** After COMMIT, before `done` of the writes is called. */
  committed(): void
  rolledBack(): void
}

export interface CommitQueue {
  add(write: Write): void
  /** Resolves when the queue is empty. */
  drain(): Promise<void>
}

/** Delay between two attempts to get the write lock from another process, in ms. */
const retryDelay = 5

export function createCommitQueue(
  db: DatabaseSync,
  path: string,
  busyTimeout: number,
  gathering: Gathering,
  checkpoints: Checkpoints | undefined,
): CommitQueue {
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  let queue: Write[] = []
  let scheduled: 'now' | 'later' | undefined
  let lockedSince: number | undefined
  let drained: PromiseWithResolvers<void> | undefined
  const turn = createCommitTurn(run, gathering.isAlone)

  function transact(writes: readonly Write[]): void {
    const accepted: Write[] = []
    const refused: [Write, MillraceError][] = []
    // Whether a failure may be caused by a single write instead of the file.
    let isolate = false
    let pages: number
    let others = 0
    try {
      if (!db.isTransaction) begin.run()
      isolate = writes.length > 1
      gathering.begin()
      for (const write of writes) {
        try {
          write.apply()
          others += write.pages ?? 1
          accepted.push(write)
        } catch (error) {
          if (!(error instanceof MillraceError)) throw error
          refused.push([write, error])
        }
      }
      pages = gathering.flush() + others
      isolate = false
      commit.run()
    } catch (error) {
      const clean = rollBack()
      gathering.rolledBack()
      // One write that the database rejects must not fail the other runs of its tick.
      if (isolate && clean) for (const write of writes) transact([write])
      else fail(writes, error)
      return
    }
    checkpoints?.wrote(pages)
    gathering.committed()
    for (const write of accepted) write.done()
    for (const [write, error] of refused) write.fail(error)
  }

  /** Returns whether another transaction may begin. */
  function rollBack(): boolean {
    try {
      // After a full disk or an I/O error, SQLite has already rolled back.
      if (db.isTransaction) db.exec('ROLLBACK')
      return true
    } catch {
      return false
    }
  }

  function fail(writes: readonly Write[], cause: unknown): void {
    const error = isOfValue(cause) ? valueRefused(cause) : storeFailed('cannot write to the log', path, cause)
    for (const write of writes) write.fail(error)
  }

  function run(): void {
    // An earlier timer may have committed everything.
    if (queue.length === 0) return
    const wait = checkpoints?.barrier
    if (wait !== undefined) return void wait.then(run)
    try {
      begin.run()
    } catch (error) {
      lockedSince ??= performance.now()
      if (isBusy(error) && performance.now() - lockedSince < busyTimeout) {
        // SQLite's own busy handler would block this thread, and with it every run and reader.
        setTimeout(run, retryDelay)
        return
      }
      const writes = emptyQueue()
      fail(writes, error)
      return
    }
    transact(emptyQueue())
  }

  function emptyQueue(): Write[] {
    const writes = queue
    queue = []
    scheduled = undefined
    lockedSince = undefined
    drained?.resolve()
    drained = undefined
    return writes
  }

  return {
    add(write) {
      queue.push(write)
      if (scheduled === 'now' || (scheduled === 'later' && write.yields)) return
      scheduled = write.yields ? 'later' : 'now'
      if (write.yields) turn.later()
      else turn.soon()
    },
    async drain() {
      if (scheduled === undefined) return
      drained ??= Promise.withResolvers()
      await drained.promise
    },
  }
}

/*
 * The time of a commit. For a single active run: at the end of this event-loop turn. For several: after the first turn without other work, and at
 * most 2 ms later. Then their writes share a transaction, and their next work runs together while its code is in the CPU's caches.
 */

/** Maximum wait for the writes of other runs, in ms. */
const longestWait = 2
/** A turn that took less, in ms, had no other work. */
const emptyTurn = 0.06

interface CommitTurn {
  soon(): void
  /** Commits one turn later. */
  later(): void
}

/** `isAlone`: no other run is active. `commit` may be called when there is nothing to commit. */
export function createCommitTurn(commit: () => void, isAlone: () => boolean): CommitTurn {
  let isWaiting = false
  let since = 0
  let turn = 0

  function look(): void {
    const now = performance.now()
    const isIdle = now - turn < emptyTurn
    turn = now
    if (!isIdle && now - since < longestWait && !isAlone()) return void setImmediate(look)
    isWaiting = false
    commit()
  }

  function soon(): void {
    if (isWaiting) return
    isWaiting = true
    since = turn = performance.now()
    setImmediate(look)
  }

  return { soon, later: () => void setImmediate(soon) }
}
