/**
 * The log alone: appends per second, append latency, and the longest stall of the event loop; also with readers, with a second
 * process that locks the file, and on a slow disk. Run with `npm run bench -- log`.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Entry } from '../src/part/entry.ts'
import type { Store } from '../src/part/log.ts'
import { memoryStore } from '../src/store/memory-store.ts'
import { sqliteStore } from '../src/store/sqlite/store.ts'
import { answerCalls } from './calls.ts'
import { core, startChild } from './child.ts'
import { deltaText } from './deltas.ts'
import type { Options, Result, ResultRow, Sample } from './scenario.ts'

interface Subject {
  name: string
  title: string
  disk: boolean
  /** Runs written concurrently. */
  runs: number
  /** Entries per append. */
  batch: number
  readersPerRun?: number
  /** A second process alternately locks and releases the file for this many ms. */
  locked?: number
  /** Each fsync of this process takes 20 ms. */
  slowDisk?: true
}

const all: Subject[] = [
  { name: 'memory', title: 'memory, 50 runs', disk: false, runs: 50, batch: 1 },
  { name: 'one', title: 'SQLite, 1 run', disk: true, runs: 1, batch: 1 },
  { name: 'fifty', title: 'SQLite, 50 runs', disk: true, runs: 50, batch: 1 },
  { name: 'fifty-20', title: 'SQLite, 50 runs, 20 entries per append', disk: true, runs: 50, batch: 20 },
  { name: 'two-hundred', title: 'SQLite, 200 runs', disk: true, runs: 200, batch: 1 },
  { name: 'readers', title: 'SQLite, 50 runs, one reader each', disk: true, runs: 50, batch: 1, readersPerRun: 1 },
  { name: 'crowd', title: 'SQLite, 1 run, 100 readers', disk: true, runs: 1, batch: 1, readersPerRun: 100 },
  { name: 'locked', title: 'SQLite, 50 runs, locked 20 of 40 ms', disk: true, runs: 50, batch: 1, locked: 20 },
  { name: 'slow-disk', title: 'SQLite, 50 runs, 20 ms per fsync', disk: true, runs: 50, batch: 1, slowDisk: true },
]

async function measureSubject(subject: Subject, dir: string, seconds: number, n: number): Promise<Sample> {
  const path = join(dir, `${subject.name}-${n}.db`)
  const store = subject.disk ? sqliteStore(path) : memoryStore()
  const args = [join(import.meta.dirname, 'log-lock.ts'), path, String(subject.locked), String(subject.locked)]
  const locker =
    subject.locked === undefined
      ? undefined
      : await startChild({ args, core: core.load, awaitReady: true, channel: false })
  try {
    return await writeRuns(store, subject, seconds)
  } finally {
    await locker?.stop()
    await store.close()
  }
}

async function writeRuns(store: Store, subject: Subject, seconds: number): Promise<Sample> {
  const { runs, batch, readersPerRun = 0 } = subject
  const stop = new AbortController()
  const waits: number[] = []
  let read = 0
  const before = process.cpuUsage()
  const began = performance.now()
  const until = began + seconds * 1000
  const stall = watchStalls()

  async function write(run: string): Promise<number> {
    let seq = 0
    await store.log.append(run, 1, [startOf(run, ++seq)])
    do {
      const entries = Array.from({ length: batch }, () => deltaOf(++seq))
      const asked = performance.now()
      await store.log.append(run, 1, entries)
      waits.push(performance.now() - asked)
    } while (performance.now() < until)
    return seq
  }

  async function follow(run: string): Promise<void> {
    for await (const entries of store.log.read(run, { signal: stop.signal })) read += entries.length
  }

  const ids = Array.from({ length: runs }, (_, i) => `run_${i}`)
  const readers = ids.flatMap((run) => Array.from({ length: readersPerRun }, () => follow(run)))
  const written = (await Promise.all(ids.map(write))).reduce((sum, count) => sum + count, 0)
  const took = (performance.now() - began) / 1000
  while (read < written * readersPerRun) await new Promise((resolve) => setImmediate(resolve))
  const worst = stall()
  stop.abort()
  await Promise.all(readers)
  const { user, system } = process.cpuUsage(before)
  const sorted = waits.toSorted((a, b) => a - b)
  return {
    appends: waits.length / took,
    entries: written / took,
    cpu: (user + system) / written,
    p50: sorted[Math.floor(sorted.length * 0.5)]!,
    p99: sorted[Math.floor(sorted.length * 0.99)]!,
    stall: worst,
  }
}

/** Starts watching the event loop. The returned function gives the longest stall so far, in ms. */
function watchStalls(): () => number {
  let worst = 0
  let last = performance.now()
  let over = false
  const look = () => {
    const now = performance.now()
    worst = Math.max(worst, now - last)
    last = now
    if (!over) setImmediate(look)
  }
  setImmediate(look)
  return () => {
    over = true
    return Math.max(worst, performance.now() - last)
  }
}

function startOf(runId: string, seq: number): Entry {
  const start = { agent: 'bench', pipeline: '', threadId: runId, protocol: 'bench', input: {} }
  return { seq, timestamp: Date.now(), step: '', type: 'run-start', runId, ...start } as Entry
}

function deltaOf(seq: number): Entry {
  return { seq, timestamp: Date.now(), step: 'main/answer/1', type: 'text-delta', id: 't', delta: deltaText(seq) }
}

async function measure({ rounds = 3, seconds, slowDisk }: Options & { slowDisk: boolean }): Promise<Result[]> {
  const subjects = all.filter((subject) => (subject.slowDisk ?? false) === slowDisk)
  const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const rows: ResultRow[] = subjects.map(({ name, title }) => ({ name, title, samples: [] }))
  try {
    for (let round = 0; round <= rounds; round++) {
      for (let i = 0; i < subjects.length; i++) {
        const at = (i + round) % subjects.length
        const sample = await measureSubject(subjects[at]!, dir, seconds / 4, round)
        if (round > 0) rows[at]!.samples.push(sample)
      }
    }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
  return [
    {
      scenario: 'log',
      title: `The log alone, each run appending as soon as its last append is stored; medians of ${rounds} rounds`,
      reference: 'fifty',
      columns: [
        { key: 'appends', title: 'appends/s', digits: 0, ratio: true },
        { key: 'entries', title: 'entries/s', digits: 0 },
        { key: 'cpu', title: 'CPU µs per entry', digits: 1, ratio: true },
        { key: 'p50', title: 'p50 ms', digits: 2 },
        { key: 'p99', title: 'p99 ms', digits: 2 },
        { key: 'stall', title: 'worst stall ms', digits: 1 },
      ],
      rows,
      notes: [
        'Stall: the longest time that the event loop was blocked. The memory store resolves without I/O, so writers in a tight loop block it.',
      ],
    },
  ]
}

answerCalls({ measure })
