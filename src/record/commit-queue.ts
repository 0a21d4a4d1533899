/**
 * Group commit: all writes of one event-loop tick, over all runs, go into one transaction. A commit costs about as much
 * as fifty inserts, so this is what makes persisting before delivering affordable.
 */
import type { DatabaseSync } from 'node:sqlite'
import { MillraceError } from '../part/error.ts'
import type { Checkpoints } from './sqlite-checkpoint.ts'
import { storeFailed } from './store-error.ts'

export interface Write {
  /**
   * Committed a turn of the event loop later, unless something else is committed before. What begins a run asks a model in
   * the same turn, and that request leaves at the turn's end: it does not wait for a commit that nobody waits for yet.
   */
  yields: boolean
  /** Inside the transaction. A `MillraceError` refuses this write alone. */
  apply(): void
  /** After COMMIT. */
  done(): void
  /** Refused, or not committed: nothing of it is stored. */
  fail(error: MillraceError): void
}

/** What is gathered over the writes of one transaction. */
export interface Gathering {
  begin(): void
  /** Before COMMIT: writes what was gathered. The pages that it changes, about. */
  flush(): number
  /** After COMMIT, before the writes are told. */
  committed(): void
  rolledBack(): void
}

export interface CommitQueue {
  add(write: Write): void
  /** Resolves when nothing waits any more. */
  drain(): Promise<void>
}

/** Ms between two tries to get the write lock from another process. */
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

  function transact(writes: readonly Write[]): void {
    const accepted: Write[] = []
    const refused: [Write, MillraceError][] = []
    // Whether a failure may be of something written, by one write only, and not of the file.
    let isolate = false
    let pages: number
    try {
      if (!db.isTransaction) begin.run()
      isolate = writes.length > 1
      gathering.begin()
      for (const write of writes) {
        try {
          write.apply()
          accepted.push(write)
        } catch (error) {
          if (!(error instanceof MillraceError)) throw error
          refused.push([write, error])
        }
      }
      pages = gathering.flush() + writes.length
      isolate = false
      commit.run()
    } catch (error) {
      const clean = rollBack()
      gathering.rolledBack()
      // One write that the database cannot take must not fail the runs that share its tick.
      if (isolate && clean) for (const write of writes) transact([write])
      else fail(writes, error)
      return
    }
    checkpoints?.wrote(pages)
    gathering.committed()
    for (const write of accepted) write.done()
    for (const [write, error] of refused) write.fail(error)
  }

  /** Whether another transaction may begin. */
  function rollBack(): boolean {
    try {
      // After a full disk or an I/O error SQLite has rolled back by itself.
      if (db.isTransaction) db.exec('ROLLBACK')
      return true
    } catch {
      return false
    }
  }

  function fail(writes: readonly Write[], cause: unknown): void {
    const error = storeFailed('cannot write to the log', path, cause)
    for (const write of writes) write.fail(error)
  }

  function run(): void {
    // It may have been run before its time.
    if (queue.length === 0) return
    const wait = checkpoints?.holding
    if (wait !== undefined) return void wait.then(run)
    try {
      begin.run()
    } catch (error) {
      lockedSince ??= performance.now()
      if (isBusy(error) && performance.now() - lockedSince < busyTimeout) {
        // SQLite's own busy handler would sleep on this thread and stop every run and reader with it.
        setTimeout(run, retryDelay)
        return
      }
      const writes = take()
      fail(writes, error)
      return
    }
    transact(take())
  }

  function take(): Write[] {
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
      if (write.yields) setImmediate(() => setImmediate(run))
      else setImmediate(run)
    },
    async drain() {
      if (scheduled === undefined) return
      drained ??= Promise.withResolvers()
      await drained.promise
    },
  }
}

function isBusy(error: unknown): boolean {
  // The low byte of the extended code: SQLITE_BUSY, SQLITE_LOCKED.
  const code = Number((error as { errcode?: unknown }).errcode) & 0xff
  return code === 5 || code === 6
}
