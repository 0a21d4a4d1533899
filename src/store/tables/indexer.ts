/**
 * Fills the tables in the background, in slices of a few ms between other work, on the store's own connection: a commit of another connection would
 * invalidate the store's caches. While this process records runs it uses a twentieth of the time; otherwise all idle time. Several processes may do
 * it: the one with the lock continues at the tables' position.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { Checkpoints } from '../sqlite/checkpoint.ts'
import { isBusy, storeClosed } from '../store-error.ts'
import { setAside } from '../sqlite/foreign.ts'
import type { VersionGuard } from '../sqlite/version.ts'
import { DeltaRows, type DeltaRow } from './delta-rows.ts'
import { createFill, type Fill } from './fill.ts'
import { recreateTables } from './layout.ts'

/** Has a row if anything up to this row of `ticks` is not in the tables. */
export const behind = `SELECT 1 FROM index_state
  WHERE tick < ? OR EXISTS (SELECT 1 FROM index_queue) OR EXISTS (SELECT 1 FROM indexed_later)`

/** In ms. */
export interface IndexerTimes {
  /** Length of a slice. */
  slice: number
  /** The pause after a slice while runs are recorded, as a multiple of the slice's duration; at least `pause`. */
  share: number
  pause: number
  /** Time after the last commit after which the store counts as idle. */
  calm: number
  /** Polling interval for work of other processes, and the delay before the first poll. */
  look: number
  first: number
  /** The clock of a slice. */
  now?(): number
  /** Called after each slice. */
  worked?(ms: number): void
}

export interface Indexer {
  /** Call it for each row of `ticks` after its commit. */
  wroteRow(row: DeltaRow, hasOnlyDeltas: boolean): void
  /** Call it after each commit of the store. */
  wrote(): void
  /** Resolves when everything stored before the call is in the tables. */
  settle(): Promise<void>
  /** Empties the tables and fills them again, in slices of `most` ms. `tell` also gets the part of the log that was read, from 0 to 1. */
  rebuild(tell?: (done: number, of: number, part: number) => void, most?: number): Promise<void>
  close(): void
}

const usual: IndexerTimes = {
  slice: 3,
  share: 20,
  pause: 100,
  calm: 300,
  look: 2000,
  first: 500,
}

/** As SQLite takes it: in KB, negative. */
const rebuildCache = -64 * 1024

export function createIndexer(
  db: DatabaseSync,
  checkpoints: Checkpoints | undefined,
  guard?: Pick<VersionGuard, 'look'>,
  times: IndexerTimes = usual,
): Indexer {
  // Lazy: a short command must not wait for its statements.
  let made: Fill | undefined
  const deltaRows = new DeltaRows()
  const now = times.now ?? (() => performance.now())
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const lastTick = db.prepare('SELECT coalesce(max(id), 0) AS id FROM ticks')
  const isBehind = db.prepare(behind)
  let timer: ReturnType<typeof setTimeout> | undefined
  let wroteAt = -Infinity
  let closed = false
  const looking = setInterval(look, times.look)
  looking.unref()
  // Work of an earlier process, after this one's start.
  const first = setTimeout(look, times.first)
  first.unref()

  /** Works for about `most` ms. Returns whether work is left, or `busy` if it could not begin. */
  function slice(most: number): boolean | 'busy' {
    const started = now()
    const isOver = () => now() - started >= most
    db.exec('PRAGMA busy_timeout = 0')
    try {
      begin.run()
    } catch (error) {
      if (isBusy(error)) return 'busy'
      throw error
    } finally {
      db.exec('PRAGMA busy_timeout = 5')
    }
    let more = true
    let steps = 0
    try {
      guard?.look()
      const fill = (made ??= createFill(db, deltaRows))
      fill.begin()
      do {
        more = fill.step(isOver)
        steps++
      } while (more && !isOver())
      fill.save()
      commit.run()
    } catch (error) {
      // Its cached state is not in the tables.
      made = undefined
      if (db.isTransaction) db.exec('ROLLBACK')
      throw error
    }
    checkpoints?.wrote(steps)
    times.worked?.(now() - started)
    return more
  }

  function schedule(ms: number): void {
    if (closed || timer !== undefined) return
    timer = setTimeout(work, ms)
    timer.unref()
  }

  function work(): void {
    timer = undefined
    if (closed) return
    const wait = checkpoints?.barrier
    if (wait !== undefined) return void wait.then(() => schedule(times.pause))
    const started = performance.now()
    const isCalm = started - wroteAt > times.calm
    let more: boolean | 'busy'
    try {
      more = slice(times.slice)
    } catch {
      // A full disk, for example. The failure is reported where the run is recorded.
      return schedule(times.look)
    }
    const took = performance.now() - started
    if (more === 'busy') schedule(times.pause)
    else if (more) schedule(isCalm ? 1 : Math.max(times.pause, took * times.share))
  }

  function look(): void {
    try {
      if (timer === undefined && isBehind.get(lastTick.get()!.id!) !== undefined) schedule(0)
    } catch {
      // A locked or damaged file: later.
    }
  }

  /** `most`: ms of a slice. */
  async function settle(most = times.slice, tell?: () => void): Promise<void> {
    const { id: last } = lastTick.get()!
    for (;;) {
      if (closed) throw storeClosed('fill the tables')
      await checkpoints?.barrier
      if (isBehind.get(last!) === undefined) return
      const more = slice(most)
      tell?.()
      if (more === 'busy') await new Promise((resolve) => setTimeout(resolve, 5))
      else await new Promise<void>((resolve) => setImmediate(resolve))
    }
  }

  return {
    wroteRow: (row, hasOnlyDeltas) => deltaRows.wrote(row, hasOnlyDeltas),
    wrote() {
      wroteAt = performance.now()
      schedule(times.pause)
    },
    settle: () => settle(),
    async rebuild(tell, most) {
      const count = db.prepare(
        'SELECT (SELECT count(*) FROM indexed_runs) AS done, (SELECT count(*) FROM runs) AS of, tick FROM index_state',
      )
      const { cache_size: usualCache } = db.prepare('PRAGMA cache_size').get()!
      const ticks = Number(lastTick.get()!.id)
      for (;;) {
        try {
          begin.run()
          break
        } catch (error) {
          if (!isBusy(error)) throw error
          await new Promise((resolve) => setTimeout(resolve, 5))
        }
      }
      try {
        guard?.look()
        // Objects that users have added to the tables would be dropped with them.
        const putBack = setAside(db)
        recreateTables(db)
        putBack(() => undefined)
        commit.run()
      } catch (error) {
        if (db.isTransaction) db.exec('ROLLBACK')
        throw error
      }
      const say = () => {
        const { done, of, tick } = count.get()!
        tell?.(Number(done), Number(of), ticks === 0 ? 1 : Math.min(1, Number(tick) / ticks))
      }
      let said = performance.now()
      // The tables' indexes are written all over: each page that leaves the cache is written and read again.
      db.exec(`PRAGMA cache_size = ${rebuildCache}`)
      try {
        await settle(most, () => {
          if (performance.now() - said < 250) return
          said = performance.now()
          say()
        })
      } finally {
        if (!closed) db.exec(`PRAGMA cache_size = ${Number(usualCache)}`)
      }
      say()
    },
    close() {
      closed = true
      clearTimeout(timer)
      clearInterval(looking)
      clearTimeout(first)
    },
  }
}
