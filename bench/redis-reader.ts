/** Follows runs and notes how old each delta is when it comes. As a program: a reader in another process, on a Redis store. */
import type { Store } from '../src/part/log.ts'
import { redisStore } from '../src/store/redis/redis-store.ts'
import { answerCalls } from './calls.ts'
import { nowMicros, sentAt } from './deltas.ts'

export interface Seen {
  /** Entries so far. */
  count: number
  /** Of the deltas, in ms. */
  p50: number
  p99: number
  /** When the last one came, in µs. */
  at: number
}

export interface Reader {
  /** Resolves when each run's first entry has come. */
  follow(runs: readonly string[]): Promise<void>
  seen(): Promise<Seen>
  stop(): Promise<void>
}

export function createReader(store: Store): Reader {
  const leave = new AbortController()
  const reading: Promise<void>[] = []
  const waits: number[] = []
  let count = 0
  let at = 0

  async function read(run: string, onFirst: () => void): Promise<void> {
    for await (const entries of store.log.read(run, { signal: leave.signal })) {
      at = nowMicros()
      count += entries.length
      for (const entry of entries) if (entry.type === 'text-delta') waits.push(at - sentAt(entry.delta))
      onFirst()
    }
  }

  return {
    async follow(runs) {
      await Promise.all(
        runs.map((run) => new Promise<void>((resolve, reject) => reading.push(read(run, resolve).catch(reject)))),
      )
    },
    seen() {
      const sorted = Float64Array.from(waits).toSorted()
      const share = (part: number) => (sorted[Math.floor(sorted.length * part)] ?? 0) / 1000
      return Promise.resolve({ count, p50: share(0.5), p99: share(0.99), at })
    },
    async stop() {
      leave.abort()
      await Promise.all(reading)
    },
  }
}

if (import.meta.main) {
  const store = await redisStore(process.argv[2]!)
  const reader = createReader(store)
  answerCalls({
    follow: (runs: string[]) => reader.follow(runs),
    seen: () => reader.seen(),
    stop: () => reader.stop(),
  })
}
