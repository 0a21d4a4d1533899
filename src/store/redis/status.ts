/** What monitors are told of the store. */
import type { StoreStatus } from '../../part/store-status.ts'
import { inTime, type Connection } from './connection.ts'
import type { StoreClock } from './store-clock.ts'

/** Commits whose times are kept. */
const recent = 500
/** Whoever asks waits no longer for an answer of Redis, in ms. */
const patience = 250

export function createStatus(connection: Connection, pending: () => number, clock: StoreClock) {
  const times: number[] = []
  const commits = { count: 0, seconds: 0 }
  const claims = { won: 0, refused: 0 }
  let takeovers = 0
  let awaySince: number | undefined
  let reconnects = 0
  connection.onDown(() => void (awaySince ??= performance.now()))
  connection.onUp(() => {
    if (awaySince === undefined || !connection.isWhole()) return
    reconnects++
    awaySince = undefined
  })

  async function memory(): Promise<StoreStatus['memory']> {
    const key = connection.keys.format
    const info = String(await inTime(connection.send(key, ['INFO', 'memory']), patience))
    const bytes = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'mu').exec(info)?.[1] ?? 0)
    return { usedBytes: bytes('used_memory'), maxBytes: bytes('maxmemory') }
  }

  return {
    /** A script took so many ms. */
    committed(ms: number): void {
      times[commits.count++ % recent] = ms / 1000
      commits.seconds += ms / 1000
    },
    tookOver: () => void takeovers++,
    async claimed(claim: Promise<boolean>): Promise<boolean> {
      const isWon = await claim
      if (isWon) claims.won++
      else claims.refused++
      return isWon
    },
    async read(): Promise<StoreStatus> {
      const sorted = times.toSorted((a, b) => a - b)
      const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0
      const used = await memory().catch(() => undefined)
      return {
        connected: connection.isWhole(),
        awayMs: awaySince === undefined ? 0 : Math.round(performance.now() - awaySince),
        patienceMs: connection.timeoutMs,
        reconnects,
        clockAheadMs: Math.round(clock.ahead()),
        claims: { ...claims },
        takeovers,
        pending: pending(),
        commits: { ...commits, p50Seconds: at(0.5), p99Seconds: at(0.99) },
        ...(used && { memory: used }),
      }
    },
  }
}
