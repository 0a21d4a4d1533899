/** Ended runs, and leases for the work on them: a worker's lease excludes others for a while. The script decides. */
import { randomUUID } from 'node:crypto'
import type { RedisConnection } from './connection.ts'
import { partitions } from './index-script.ts'
import { partitionOf, type Partition } from './keys.ts'
import { operate, readSet } from './read-script.ts'

/** Duration of a lease without renewal, in ms. */
const leaseFor = 60_000

/** The right to work on a run. */
export interface Lease {
  token: string
  /** Renews the lease if that is due. Rejects if another worker has it now. */
  renew(): Promise<void>
  release(): Promise<void>
}

export type EndedRuns = ReturnType<typeof createEndedRuns>

export function createEndedRuns(connection: RedisConnection) {
  const { keys, ask } = connection
  const all = Array.from({ length: partitions }, (_, partition): Partition => partition)

  /** Does an operation of the script. `what` completes “cannot …”. */
  async function change(what: string, run: string, name: string, args: readonly (string | number)[]): Promise<number> {
    return Number(await operate(connection, what, partitionOf(run), [name, run, ...args.map(String)]))
  }

  async function lease(what: string, run: string): Promise<Lease | undefined> {
    const token = randomUUID()
    let until = 0
    const take = async () => {
      until = performance.now() + leaseFor
      return (await change(what, run, 'lease', [token, leaseFor])) === 1
    }
    if (!(await take())) return undefined
    return {
      token,
      async renew() {
        if (performance.now() > until - leaseFor / 2 && !(await take()))
          throw new Error(`${what}: another process does`)
      },
      release: async () => void (await change(what, run, 'release', [token]).catch(() => undefined)),
    }
  }

  /** The runs of a set that ended before a moment, oldest first, without leased ones. */
  async function endedBefore(set: 'ended' | 'compacted', before: number, limit: number): Promise<[string, number][]> {
    const range = ['-inf', before === Infinity ? '+inf' : `(${before}`, 'WITHSCORES', 'LIMIT', '0', String(limit)]
    const found = await Promise.all(
      all.map((partition) =>
        readSet<[string, number]>(connection, 'list runs', partition, set, ['ZRANGEBYSCORE', ...range]),
      ),
    )
    const sorted = found.flat().toSorted((a, b) => a[1] - b[1])
    const free: [string, number][] = []
    for (let i = 0; i < sorted.length && free.length < limit; i += 100) {
      const some = sorted.slice(i, i + 100)
      const held = await Promise.all(
        some.map(async ([run]) => {
          const key = `${keys.tagOf(run)}:lease:${run}`
          return (await ask('list runs', key, ['EXISTS', key])) === 1
        }),
      )
      free.push(...some.filter((_, at) => !held[at]))
    }
    return free.slice(0, limit)
  }

  /** Drops the times of changes before a moment. */
  async function forgetChanges(before: number): Promise<void> {
    const args = ['trim', String(Math.max(0, before))]
    await Promise.all(all.map((partition) => operate(connection, 'forget old changes', partition, args)))
  }

  return { change, lease, endedBefore, forgetChanges }
}
