import { execFile } from 'node:child_process'
import {
  existsSync,
  fdatasync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createCommitQueue } from './commit-queue.ts'
import { createCheckpoints, type CheckpointLimits, type Checkpoints, createFlusher } from './checkpoint.ts'
import { openDatabase } from './schema.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-checkpoint-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0

/** A database with rounds every 50 pages, where commits wait behind 200. */
function open(limits: Partial<CheckpointLimits> = {}) {
  const path = join(folder, `${++files}.db`)
  const db = openDatabase(path, { busyTimeout: 5000 })
  const checkpoints = createCheckpoints(db, { due: 50, most: 200, ...limits })!
  onTestFinished(async () => {
    await checkpoints.close()
    db.close()
  })
  return { path, db, checkpoints }
}

const page = 4096
const text = 'x'.repeat(page)
let ids = 0

/** One commit after the other, each of about three pages, as often as it is let. `waited`: before this one it was not. */
async function write(db: DatabaseSync, checkpoints: Checkpoints, goesOn: (waited: boolean) => boolean) {
  const insert = db.prepare('INSERT INTO ticks (run, first_seq, last_seq, entries) VALUES (?, 1, 1, ?)')
  for (let waited = false; ;) {
    insert.run(`run_${ids++}`, text)
    checkpoints.wrote(3)
    if (!goesOn(waited)) return
    await turn()
    waited = checkpoints.barrier !== undefined
    await checkpoints.barrier
  }
}

describe('WAL checkpoint', () => {
  test('the WAL restarts again and again during constant commits, and its content reaches the database', async () => {
    const { path, db, checkpoints } = open()
    const look = db.prepare('PRAGMA wal_checkpoint(NOOP)')
    let anew = 0
    await write(db, checkpoints, (waited) => {
      if (!waited) return true
      expect(look.get()!['log']).toBeLessThan(50)
      return ++anew < 3
    })
    expect(statSync(path).size).toBeGreaterThan(3 * 200 * page * 0.3)
  })

  test('a reader of an old snapshot delays commits only when the WAL has doubled', async () => {
    const { path, db, checkpoints } = open()
    const reader = openDatabase(path, { busyTimeout: 5000, readOnly: true })
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM ticks').get()
    let commits = 0
    // At least once they wait, however late the thread begins.
    await write(db, checkpoints, () => ++commits < 4000 || checkpoints.waits === 0)
    reader.close()
    // About 20,000 pages: behind 200, 400, 800 … of them.
    expect(checkpoints.waits).toBeLessThan(8)
  })

  /** Bytes of a database's WAL file. */
  const walOf = (path: string) => statSync(`${path}-wal`).size
  const rowsOf = (db: DatabaseSync) => db.prepare('SELECT count(*) AS n FROM ticks').get()!['n']

  test('once a burst of writes is over the WAL file is emptied, and all of it is in the database', async () => {
    const { path, db, checkpoints } = open({ quietMs: 20 })
    let commits = 0
    await write(db, checkpoints, () => ++commits < 200)
    await expect.poll(() => walOf(path)).toBe(0)
    const other = openDatabase(path, { busyTimeout: 5000, readOnly: true })
    expect(rowsOf(other)).toBe(200)
    other.close()
    expect(rowsOf(db)).toBe(200)
  })

  test('while writes come fast the WAL file keeps its size', async () => {
    const { path, db, checkpoints } = open({ quietMs: 3_600_000 })
    let anew = 0
    await write(db, checkpoints, (waited) => !waited || ++anew < 3)
    expect(walOf(path)).toBeGreaterThan(200 * page)
  })

  test('slow writes never overwrite an old WAL: each round empties the file', async () => {
    const { path, db, checkpoints } = open({ quietMs: 3_600_000 })
    const { now } = performance
    const later = vi.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + 7_200_000)
    onTestFinished(() => later.mockRestore())
    let commits = 0
    await write(db, checkpoints, () => ++commits < 17)
    await expect.poll(() => walOf(path)).toBe(0)
    expect(rowsOf(db)).toBe(17)
  })

  test('a WAL that somebody reads is emptied once they have left', async () => {
    const { path, db, checkpoints } = open({ quietMs: 20 })
    const reader = openDatabase(path, { busyTimeout: 5000, readOnly: true })
    let commits = 0
    await write(db, checkpoints, () => ++commits < 10)
    reader.exec('BEGIN')
    expect(rowsOf(reader)).toBe(10)
    await write(db, checkpoints, () => ++commits < 100)
    await pause(200)
    expect(walOf(path)).toBeGreaterThan(0)
    expect(rowsOf(reader)).toBe(10)
    reader.close()
    await expect.poll(() => walOf(path)).toBe(0)
  })

  test('commits go on while the WAL file is emptied again and again', async () => {
    const { path, db, checkpoints } = open({ quietMs: 1 })
    const sizes = new Set<number>()
    let commits = 0
    await write(db, checkpoints, () => {
      sizes.add(walOf(path))
      return ++commits < 2000 || !sizes.has(0)
    })
    expect(rowsOf(db)).toBe(commits)
    expect(db.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' })
  })

  test('where the thread cannot go on SQLite writes back within commits, as by itself', async () => {
    const { path, db, checkpoints } = open()
    const automatic = db.prepare('PRAGMA wal_autocheckpoint')
    expect(automatic.get()).toEqual({ wal_autocheckpoint: 0 })
    unlinkSync(path)
    checkpoints.wrote(50)
    while (automatic.get()!['wal_autocheckpoint'] !== 1000) await turn()
    expect(checkpoints.barrier).toBeUndefined()
    let commits = 0
    await write(db, checkpoints, () => ++commits < 100)
  })

  /** A process of its own with a database and checkpoints at every page; what it prints. */
  async function inProcess(program: string, flags: string[] = []): Promise<string> {
    const path = JSON.stringify(join(folder, `${++files}.db`))
    const modules = ['checkpoint', 'schema'].map((name) => new URL(`./${name}.ts`, import.meta.url).href)
    const prepared = `
    const [{ createCheckpoints }, { openDatabase }] = await Promise.all(${JSON.stringify(modules)}.map((at) => import(at)))
    const db = openDatabase(${path}, { busyTimeout: 5000 })
    const checkpoints = createCheckpoints(db, { due: 1, most: 1 })
    ${program}`
    return (await promisify(execFile)(process.execPath, [...flags, '--input-type=module', '-e', prepared])).stdout
  }

  test('nor is one needed: where no thread may be had, a commit is none the worse for it', async () => {
    const said = await inProcess(
      `checkpoints.wrote(1)
    console.log(db.prepare('PRAGMA wal_autocheckpoint').get().wal_autocheckpoint)`,
      ['--permission', '--allow-fs-read=*', '--allow-fs-write=*'],
    )
    expect(said).toBe('1000\n')
  })

  test.skipIf(!existsSync('/proc/self/fd'))(
    'of a link to a database the WAL beside the file itself is flushed',
    async () => {
      const [file, link] = [join(folder, `${++files}.db`), join(folder, `${++files}.db`)]
      openDatabase(file, { busyTimeout: 5000 }).close()
      symlinkSync(file, link)
      const db = openDatabase(link, { busyTimeout: 5000 })
      const checkpoints = createCheckpoints(db)!
      onTestFinished(async () => {
        await checkpoints.close()
        db.close()
      })
      const opened = () => {
        const held = readdirSync('/proc/self/fd').map((fd) => linkOf(`/proc/self/fd/${fd}`))
        return held.filter((name) => name === `${file}-wal`).length
      }
      db.exec("INSERT INTO ticks (run, first_seq, last_seq, entries) VALUES ('r', 1, 1, '')")
      const bySqlite = opened()
      checkpoints.wrote(1)
      await expect.poll(opened).toBe(bySqlite + 1)
    },
  )

  function linkOf(path: string): string | undefined {
    try {
      return readlinkSync(path)
    } catch {
      // The folder's own descriptor is gone by now.
      return undefined
    }
  }

  test('a process with nothing else to do waits for a commit that waits', async () => {
    const said = await inProcess(`
    while (checkpoints.barrier === undefined) {
      db.exec("INSERT INTO ticks (run, first_seq, last_seq, entries) VALUES (random(), 1, 1, '')")
      checkpoints.wrote(1)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await checkpoints.barrier
    console.log('went on')`)
    expect(said).toBe('went on\n')
  })

  test('a commit waits until it is let, and the event loop does not', async () => {
    const { path, db } = open()
    const { promise, resolve } = Promise.withResolvers<void>()
    const latch = {
      wrote: () => undefined,
      barrier: promise as Promise<void> | undefined,
      waits: 0,
      erase: async () => true,
      close: async () => undefined,
    }
    const nothing = { isAlone: () => true, begin() {}, flush: () => 0, committed() {}, rolledBack() {} }
    const queue = createCommitQueue(db, path, 5000, nothing, latch)
    const order: string[] = []
    const { promise: stored, resolve: done, reject: fail } = Promise.withResolvers<void>()
    queue.add({ yields: false, apply: () => void order.push('stored'), done, fail })
    for (let i = 0; i < 20; i++) await turn()
    order.push('turned')
    latch.barrier = undefined
    resolve()
    await stored
    expect(order).toEqual(['turned', 'stored'])
  })

  test('written data is flushed to the disk once per interval, and later data again', async () => {
    const path = join(folder, 'flushed')
    openDatabase(path, { busyTimeout: 5000 }).close()
    let flushed = Promise.withResolvers<void>()
    let count = 0
    const flusher = createFlusher(path, 1, (file, done) =>
      fdatasync(file, (error) => {
        count++
        done(error)
        flushed.resolve()
      }),
    )
    for (let times = 1; times <= 2; times++) {
      for (let i = 0; i < 10; i++) flusher.wrote()
      await flushed.promise
      expect(count).toBe(times)
      flushed = Promise.withResolvers()
    }
    flusher.close()
  })

  test('data that the disk failed to flush is flushed again', async () => {
    const path = join(folder, 'failing')
    openDatabase(path, { busyTimeout: 5000 }).close()
    const failures = [new Error('EIO'), null]
    const taken = Promise.withResolvers<void>()
    const flusher = createFlusher(path, 1, (_, done) => {
      const failure = failures.shift()!
      done(failure)
      if (failure === null) taken.resolve()
    })
    flusher.wrote()
    await taken.promise
    flusher.close()
  })

  test('data written during a flush is flushed after it', async () => {
    const path = join(folder, 'flushed-again')
    openDatabase(path, { busyTimeout: 5000 }).close()
    const flushes: (() => void)[] = []
    let begun = Promise.withResolvers<void>()
    const flusher = createFlusher(path, 1, (_, done) => {
      flushes.push(() => done(null))
      begun.resolve()
    })
    flusher.wrote()
    await begun.promise
    begun = Promise.withResolvers()
    flusher.wrote()
    flushes[0]!()
    await begun.promise
    flusher.close()
    flushes[1]!()
    expect(flushes).toHaveLength(2)
  })
})
