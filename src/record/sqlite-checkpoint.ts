/**
 * Writes the WAL back into the database, away from the event loop. Left to itself SQLite does that within a commit, with two
 * fsyncs: where one takes 20 ms, a server of fifty streams stood still for two thirds of its time.
 *
 * A thread with a connection of its own does it while commits go on. The WAL begins anew only once all of it is written back,
 * which may never be while they do; so when it has become too long they wait for one round, and the event loop does not.
 *
 * What is in the WAL outlives the process at once, and a power cut once it is flushed: every second, and in each round.
 */
import { closeSync, fdatasync, openSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { checkpointThread } from './checkpoint-thread.ts'

/** In pages of 4 KB. */
export interface CheckpointLimits {
  /** About so many are written before a round begins. */
  due: number
  /** More of them in the WAL, and commits wait for the next round. */
  most: number
}

export interface Checkpoints {
  /** A commit has changed about so many pages. */
  wrote(pages: number): void
  /** What the next commit has to wait for. */
  readonly holding: Promise<void> | undefined
  /** How often commits had to wait by now. */
  readonly waits: number
  /** Before the connection is closed. */
  close(): Promise<void>
}

/** What `PRAGMA wal_checkpoint` says: pages in the WAL, and those of them that are written back. */
interface Round {
  log: number
  checkpointed: number
}

const flushMs = 1000

/** Undefined for a database in memory, which has nothing to be written back into. */
export function createCheckpoints(
  db: DatabaseSync,
  { due, most }: CheckpointLimits = { due: 4000, most: 16_000 },
): Checkpoints | undefined {
  // As SQLite has found it, behind links: the WAL lies beside it, wherever the process goes.
  const path = db.location()
  if (path === null) return undefined
  let written = 0
  let worker: Worker | undefined
  let running = false
  let waits = 0
  let held: PromiseWithResolvers<void> | undefined
  /** Rises when waiting was of no use, because somebody reads what was long ago. */
  let limit = most
  let failed = false
  let closed = false

  db.exec('PRAGMA wal_autocheckpoint = 0')
  const flusher = createFlusher(`${path}-wal`)

  function begin(): void {
    running = true
    written = 0
    try {
      worker ??= start()
      worker.postMessage('round')
    } catch {
      // No thread may be had here.
      running = false
      giveUp()
    }
  }

  function start(): Worker {
    // It must not make a file where there is none any more.
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

  function ended({ log, checkpointed }: Round): void {
    running = false
    if (held !== undefined) {
      limit = checkpointed < log ? log * 2 : most
      release()
    } else if (log > limit) {
      held = Promise.withResolvers()
      waits++
      begin()
      // The process must not end while somebody waits.
      worker?.ref()
    }
  }

  function release(): void {
    held?.resolve()
    held = undefined
    worker?.unref()
  }

  /** SQLite does it within a commit again. */
  function giveUp(): void {
    failed = true
    worker = undefined
    if (!closed) db.exec('PRAGMA wal_autocheckpoint = 1000')
    release()
  }

  return {
    wrote(pages) {
      flusher.wrote()
      written += pages
      if (written >= due && !running && !failed) begin()
    },
    get holding() {
      return held?.promise
    },
    get waits() {
      return waits
    },
    async close() {
      closed = true
      flusher.close()
      await worker?.terminate()
      release()
    },
  }
}

type FlushFile = (file: number, done: (error: Error | null) => void) => void

/** Flushes a file to the disk a second after it was written to, in a thread of Node's pool. */
export function createFlusher(path: string, ms = flushMs, flushFile: FlushFile = fdatasync) {
  let file: number | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let flushing = false
  /** Something was written that no flush which has begun is sure to take. */
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

  // What a disk has failed to take is tried again; the next round tells of it.
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
