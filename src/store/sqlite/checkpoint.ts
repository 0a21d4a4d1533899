/**
 * Checkpoints the WAL outside the event loop. By default SQLite does that inside a commit, with two fsyncs: where an fsync takes 20 ms, a server
 * with fifty streams was blocked for two thirds of the time.
 *
 * A worker thread with its own connection runs checkpoints while commits continue. The WAL restarts only once all of it is checkpointed, which may
 * never happen while commits continue. So when the WAL is too long, commits (but not the event loop) wait for one checkpoint.
 *
 * A WAL that restarts is overwritten from its beginning. If the system has dropped those pages from its file cache, each commit would first read
 * them from the disk, because a frame of the WAL does not fill whole pages. So a minute after the last round, the WAL is truncated: appended pages
 * are never read first. Not sooner, because overwriting cached pages costs less than new ones.
 *
 * Deleted data is still in the WAL: {@link Checkpoints.erase} truncates it at once, while commits wait. A concurrent reader prevents that; then it
 * is retried every minute.
 *
 * Data in the WAL survives the end of the process at once. It survives a power cut once it is flushed: every second, and by each checkpoint.
 */
import type { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { checkpointThread } from './checkpoint-thread.ts'
import { closeSync, fdatasync, openSync } from 'node:fs'

export interface CheckpointLimits {
  /** Start a checkpoint after about this many pages (4 KB) were written. */
  due: number
  /** If the WAL has more pages than this, commits wait for the next checkpoint. */
  most: number
  /** If the next checkpoint is not due after this many ms, the WAL is truncated. */
  quietMs?: number
}

export interface Checkpoints {
  /** Call this after a commit, with the approximate number of pages that it changed. */
  wrote(pages: number): void
  /** If set, the next commit must wait for it. */
  readonly barrier: Promise<void> | undefined
  /** How often commits had to wait so far. */
  readonly waits: number
  /**
   * Truncates the WAL, which has old versions of pages. `rewrites`: first rewrites the whole file. Commits wait meanwhile. Resolves with whether it
   * succeeded: a reader of another process prevents it.
   */
  erase(rewrites: boolean): Promise<boolean>
  /** Call this before the connection is closed. */
  close(): Promise<void>
}

/** The result of `PRAGMA wal_checkpoint`: pages in the WAL, how many of them are checkpointed, and whether the WAL was truncated. */
interface Round {
  log: number
  checkpointed: number
  truncated: boolean
  rewrote: boolean
}

/** Timeout of {@link Checkpoints.erase} for other processes, in ms. */
const patience = 1000

/** Returns undefined for an in-memory database, which has no WAL. */
export function createCheckpoints(
  db: DatabaseSync,
  { due, most, quietMs = 60_000 }: CheckpointLimits = { due: 4000, most: 16_000 },
): Checkpoints | undefined {
  // The path with links resolved by SQLite: the WAL is next to it, even if the working directory changes.
  const path = db.location()
  if (path === null) return undefined
  let written = 0
  let worker: Worker | undefined
  let running = false
  /** When the last round began. */
  let began = performance.now()
  let quiet: ReturnType<typeof setTimeout> | undefined
  let waits = 0
  let barrier: PromiseWithResolvers<void> | undefined
  /** Raised when waiting did not help, because a long read transaction is open. */
  let limit = most
  let failed = false
  let closed = false
  /** The current round, and the call that waits for it. */
  let round: PromiseWithResolvers<Round | undefined> | undefined
  let erasing: Promise<boolean> = Promise.resolve(true)

  db.exec('PRAGMA wal_autocheckpoint = 0')
  const flusher = createFlusher(`${path}-wal`)

  /** `truncates`: also empties the WAL file. Commits wait briefly for that, so it is not done while they already wait. */
  function begin(truncates = barrier === undefined && performance.now() - began >= quietMs): void {
    ask({ truncates, rewrites: false, patience: 0 })
  }

  function ask(what: { truncates: boolean; rewrites: boolean; patience: number }): void {
    running = true
    round = Promise.withResolvers()
    written = 0
    began = performance.now()
    clearTimeout(quiet)
    try {
      worker ??= start()
      worker.postMessage(what)
    } catch {
      // No worker can be started.
      running = false
      giveUp()
    }
  }

  function start(): Worker {
    // `mode=rw`: do not create the file if it was deleted.
    const workerData = `${pathToFileURL(path!).href}?mode=rw`
    const started = new Worker(checkpointThread, {
      workerData,
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: 1 },
    })
    started.on('message', ended).on('error', giveUp)
    started.unref()
    return started
  }

  function ended(done: Round): void {
    const { log, checkpointed, truncated } = done
    running = false
    round?.resolve(done)
    if (!truncated && !closed) quiet = setTimeout(begin, quietMs, true).unref()
    if (barrier !== undefined) {
      limit = checkpointed < log ? log * 2 : most
      release()
    } else if (log > limit) {
      barrier = Promise.withResolvers()
      waits++
      begin()
      // The process must not exit while commits wait.
      worker?.ref()
    }
  }

  function release(): void {
    barrier?.resolve()
    barrier = undefined
    worker?.unref()
  }

  /** Lets SQLite run checkpoints inside commits again. */
  function giveUp(): void {
    failed = true
    running = false
    worker = undefined
    round?.resolve(undefined)
    clearTimeout(quiet)
    if (!closed) db.exec('PRAGMA wal_autocheckpoint = 1000')
    release()
  }

  async function erase(rewrites: boolean): Promise<boolean> {
    // The process must not exit meanwhile: a command may have nothing else to do.
    while (running) {
      worker?.ref()
      await round?.promise
    }
    if (closed || failed) return false
    barrier ??= Promise.withResolvers()
    ask({ truncates: true, rewrites, patience })
    worker?.ref()
    const done = await round?.promise
    return done !== undefined && done.truncated && (done.rewrote || !rewrites)
  }

  return {
    erase: (rewrites) => (erasing = erasing.then(() => erase(rewrites))),
    wrote(pages) {
      flusher.wrote()
      written += pages
      if (written >= due && !running && !failed) begin()
    },
    get barrier() {
      return barrier?.promise
    },
    get waits() {
      return waits
    },
    async close() {
      closed = true
      clearTimeout(quiet)
      flusher.close()
      await worker?.terminate()
      round?.resolve(undefined)
      release()
    },
  }
}

/** Flushes the WAL in the background, so that committed data survives a power cut as well. */
const flushMs = 1000

type FlushFile = (file: number, done: (error: Error | null) => void) => void

/** Flushes a file to disk within `ms` after a write (default one second), in Node's thread pool. */
export function createFlusher(path: string, ms = flushMs, flushFile: FlushFile = fdatasync) {
  let file: number | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let flushing = false
  /** Whether there was a write that no running flush is certain to include. */
  let dirty = false
  let closed = false

  function flush(): void {
    timer = undefined
    flushing = true
    dirty = false
    try {
      file ??= openSync(path, 'r+')
      flushFile(file, over)
    } catch {
      over()
    }
  }

  // A failed flush is retried; the next checkpoint reports the failure.
  function over(error?: Error | null): void {
    flushing = false
    if (error) dirty = true
    if (!closed) return dirty ? later() : undefined
    if (file !== undefined) closeSync(file)
  }

  function later(): void {
    timer = setTimeout(flush, ms)
    timer.unref()
  }

  return {
    wrote() {
      dirty = true
      if (!flushing && timer === undefined) later()
    },
    close() {
      closed = true
      clearTimeout(timer)
      if (!flushing) over()
    },
  }
}
