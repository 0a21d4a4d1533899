/**
 * SQLite beside Redis: how long after `append` a reader has an entry, in the same process and in another one, at a steady rate; and entries/s when
 * each run appends as soon as its last append is stored. Run with `npm run bench -- redis`.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Entry } from '../src/part/entry.ts'
import type { Store } from '../src/part/log.ts'
import { redisStore } from '../src/store/redis/redis-store.ts'
import { sqliteStore } from '../src/store/sqlite/store.ts'
import { hasRedis, startRedis, type RedisServer } from '../test/support/redis-server.ts'
import { answerCalls } from './calls.ts'
import { core, startChild, type Child } from './child.ts'
import { deltaText, nowMicros } from './deltas.ts'
import { createReader, type Reader } from './redis-reader.ts'
import type { Options, Result, ResultRow, Sample } from './scenario.ts'

interface Subject {
  name: string
  title: string
  disk?: true
  /** The readers are in another process. */
  elsewhere?: true
}

const all: Subject[] = [
  { name: 'sqlite', title: 'SQLite, read in the same process', disk: true },
  { name: 'redis', title: 'Redis, read in the same process' },
  { name: 'redis-elsewhere', title: 'Redis, read in another process', elsewhere: true },
]

/** Runs and their appends per second. */
const rates = [
  [50, 50],
  [500, 20],
] as const
const flat = { runs: 500, batch: 20 }

let stores = 0

async function measureSubject(subject: Subject, dir: string, redis: RedisServer | undefined, seconds: number) {
  const sample: Sample = {}
  for (const [runs, perSecond] of rates) {
    Object.assign(
      sample,
      await withStore(subject, dir, redis, (store, reader) => pace(store, reader, runs, perSecond, seconds)),
    )
  }
  return { ...sample, ...(await withStore(subject, dir, redis, (store, reader) => flood(store, reader, seconds))) }
}

/** A store of its own, with a reader that has begun to follow. */
async function withStore(
  { disk, elsewhere }: Subject,
  dir: string,
  redis: RedisServer | undefined,
  measure: (store: Store, reader: Reader) => Promise<Sample>,
): Promise<Sample> {
  const prefix = `bench${++stores}`
  const url = `${redis?.url}?prefix=${prefix}`
  const store = disk ? sqliteStore(join(dir, `${prefix}.db`)) : await redisStore(url)
  const child = elsewhere ? await startReader(url) : undefined
  const reader = child?.reader ?? createReader(store)
  try {
    return await measure(store, reader)
  } finally {
    await reader.stop()
    await child?.child.stop()
    await store.close()
    await redis?.command('FLUSHALL')
  }
}

async function startReader(url: string): Promise<{ child: Child; reader: Reader }> {
  const args = [join(import.meta.dirname, 'redis-reader.ts'), url]
  const child = await startChild({ args, core: core.load, awaitReady: false, channel: true })
  const reader: Reader = {
    follow: (runs) => child.call('follow', runs),
    seen: () => child.call('seen'),
    stop: () => child.call('stop'),
  }
  return { child, reader }
}

const idOf = (i: number) => `run_${i}`

async function begin(store: Store, reader: Reader, runs: number): Promise<string[]> {
  const ids = Array.from({ length: runs }, (_, i) => idOf(i))
  await Promise.all(ids.map((run) => store.log.append(run, 1, [startOf(run)])))
  await reader.follow(ids)
  return ids
}

/** Each run appends one delta at a time, the runs evenly spread over each period. */
async function pace(store: Store, reader: Reader, runs: number, perSecond: number, seconds: number): Promise<Sample> {
  const ids = await begin(store, reader, runs)
  const seqs = ids.map(() => 1)
  const failed: unknown[] = []
  const period = 1e6 / perSecond
  const began = nowMicros()
  const total = Math.floor(seconds * perSecond) * runs
  let sent = 0
  while (sent < total) {
    const due = ((nowMicros() - began) / period) * runs
    for (; sent < Math.min(due, total); sent++) {
      const i = sent % runs
      store.log.append(ids[i]!, 1, [deltaOf(++seqs[i]!)]).catch((error: unknown) => failed.push(error))
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  const { p50, p99 } = await whole(reader, total + runs)
  if (failed.length > 0) throw failed[0]
  return { [`p50-${runs}`]: p50, [`p99-${runs}`]: p99 }
}

/** Each run appends as soon as its last append is stored. */
async function flood(store: Store, reader: Reader, seconds: number): Promise<Sample> {
  const ids = await begin(store, reader, flat.runs)
  const cpu = process.cpuUsage()
  const began = nowMicros()
  const until = began + seconds * 1e6
  const written = await Promise.all(
    ids.map(async (run) => {
      let seq = 1
      do {
        await store.log.append(
          run,
          1,
          Array.from({ length: flat.batch }, () => deltaOf(++seq)),
        )
      } while (nowMicros() < until)
      return seq
    }),
  )
  const total = written.reduce((sum, count) => sum + count, 0)
  const { at } = await whole(reader, total)
  const { user, system } = process.cpuUsage(cpu)
  return { entries: (total / (at - began)) * 1e6, cpu: (user + system) / total }
}

/** Waits until the reader has them all. */
async function whole(reader: Reader, count: number) {
  for (const end = nowMicros() + 60e6; nowMicros() < end;) {
    const seen = await reader.seen()
    if (seen.count >= count) return seen
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`the reader has ${(await reader.seen()).count} of ${count} entries`)
}

function startOf(runId: string): Entry {
  const start = { agent: 'bench', pipeline: '', threadId: runId, protocol: 'bench', input: {} }
  return { seq: 1, timestamp: Date.now(), step: '', type: 'run-start', runId, ...start } as Entry
}

function deltaOf(seq: number): Entry {
  const delta = deltaText(seq, nowMicros())
  return { seq, timestamp: Date.now(), step: 'main/answer/1', type: 'text-delta', id: 't', delta }
}

async function measure({ rounds = 3, seconds, quick }: Options): Promise<Result[]> {
  const subjects = hasRedis ? all : all.filter(({ disk }) => disk)
  const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const redis = hasRedis ? await startRedis({ aof: true }) : undefined
  const rows: ResultRow[] = subjects.map(({ name, title }) => ({ name, title, samples: [] }))
  try {
    for (let round = quick ? 1 : 0; round <= rounds; round++) {
      for (let i = 0; i < subjects.length; i++) {
        const at = (i + round) % subjects.length
        const row = rows[at]!
        if (row.failed !== undefined) continue
        try {
          const sample = await measureSubject(subjects[at]!, dir, redis, seconds / (round === 0 ? 4 : 1))
          if (round > 0) row.samples.push(sample)
        } catch (error) {
          row.failed = error instanceof Error ? error.message : String(error)
        }
      }
    }
  } finally {
    await redis?.close()
    rmSync(dir, { recursive: true, force: true })
  }
  return [
    {
      scenario: 'redis',
      title: `From append until a reader has the entry; medians of ${rounds} rounds`,
      reference: 'sqlite',
      columns: [
        ...rates.flatMap(([runs, perSecond]) => [
          { key: `p50-${runs}`, title: `${runs} × ${perSecond}/s p50 ms`, digits: 2 },
          { key: `p99-${runs}`, title: 'p99 ms', digits: 1 },
        ]),
        { key: 'entries', title: 'flat out, entries/s', digits: 0, ratio: true },
        { key: 'cpu', title: 'CPU µs per entry', digits: 1, ratio: true },
      ],
      rows,
      notes: [
        `Flat out: ${flat.runs} runs, ${flat.batch} entries an append. CPU is that of the process that writes, with its readers where they are in it. Redis writes an append-only file (everysec).`,
        ...(hasRedis ? [] : ['The rows of Redis are missing: they need redis-server or valkey-server.']),
      ],
    },
  ]
}

answerCalls({ measure })
