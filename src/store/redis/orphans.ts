/** Finds orphans. Those of a dead process are divided among the living: each first takes its own share, and after a while the untaken rest. */
import { isWanted } from '../run-row.ts'
import type { Heartbeats } from './heartbeat.ts'
import type { RedisConnection } from './connection.ts'
import { partitions } from './index-script.ts'
import type { Partition } from './keys.ts'
import { readRow } from './stored-row.ts'
import { listed, operation } from './script.ts'
import { isFailed, runScript } from './write-queue.ts'
import { redisFailed } from './damage-script.ts'

type Operate = (partition: Partition, name: string, ...args: (string | number)[]) => Promise<unknown>

/** One operation that may be executed twice, outside of the write queue. */
export function createOperate(connection: RedisConnection): Operate {
  return async (partition, name, ...args) => {
    const [result] = await runScript(connection, partition, operation(name, args))
    if (isFailed(result)) throw redisFailed(`cannot look after the runs of a partition`, connection.url, result)
    return result
  }
}

export const everyPartition: readonly Partition[] = Array.from({ length: partitions }, (_, i) => i)

/** After this time, untaken runs are open to all, in ms. */
const ownPart = 600
/** Polling interval for a dead process without runs, in ms: it may have been paused between a claim and its death. */
const askAgain = 3000
/** Runs of a dead process that no process takes, because their tools are missing, are polled at growing intervals, at most this long, in ms. */
const askSeldom = 30_000
const pageLength = 200
/** An untaken run is reported again after this time, in ms. */
const nameAgain = 1500

export interface Orphans {
  /** Runs of dead processes that this one should take now. */
  ofDead(): Promise<string[]>
  /** The processes that own active runs. Reads the names of all active runs. */
  owners(): Promise<Set<string>>
  /** Suspended runs that were due, answered or stopped, oldest first. Reads all suspended runs. */
  suspended(): Promise<string[]>
}

export function createOrphans(operate: Operate, process: string, beats: Heartbeats): Orphans {
  /** Dead processes: since when, and the time of the next poll. */
  const found = new Map<string, { since: number; next: number }>()
  /** The time of each run's last report. */
  const named = new Map<string, number>()

  async function* pages(partition: Partition, status: string): AsyncGenerator<Item[]> {
    for (let from = 0; ; from += pageLength) {
      const page = (await operate(partition, 'page', status, from, pageLength)) as Item[]
      yield page
      if (page.length < pageLength) return
    }
  }

  async function collect<T>(status: string, pick: (items: Item[]) => T[]): Promise<T[]> {
    const all = everyPartition.map(async (partition) => {
      const picked: T[] = []
      for await (const page of pages(partition, status)) picked.push(...pick(page))
      return picked
    })
    return (await Promise.all(all)).flat()
  }

  /** A run is not reported again while a process is about to take it. */
  function isNew(run: string): boolean {
    const now = performance.now()
    if (now - (named.get(run) ?? -Infinity) < nameAgain) return false
    named.set(run, now)
    return true
  }

  return {
    async ofDead() {
      const now = performance.now()
      const dead = beats.dead()
      for (const id of found.keys()) if (!dead.includes(id)) found.delete(id)
      for (const [run, at] of named) if (now - at > nameAgain) named.delete(run)
      for (const id of dead) if (!found.has(id)) found.set(id, { since: now, next: now })
      const asked = dead.filter((id) => found.get(id)!.next <= now)
      const isMine = shareOf(process, beats.takers())
      const runs = asked.map(async (id) => {
        const kept = found.get(id)!
        const all = everyPartition.map((partition) => operate(partition, 'owned', ...listed([id])))
        const left = ((await Promise.all(all)) as string[][]).flat()
        const waited = Math.min((now - kept.since) / 4, askSeldom)
        kept.next = performance.now() + (left.length === 0 ? askAgain : waited)
        return now - kept.since < ownPart ? left.filter(isMine) : left
      })
      return (await Promise.all(runs)).flat().filter(isNew)
    },
    async owners() {
      const found = await collect('running', (page) => [...new Set(page.map(([, , owner]) => owner))])
      return new Set(found.filter((owner) => owner !== ''))
    },
    async suspended() {
      const now = Date.now()
      const wanted = await collect('suspended', (page) =>
        page.filter(([run, , , row, messages]) => {
          const keys = new Set(messages)
          return (
            row !== '' && isWanted(readRow(run, [row, '0', '0', '0', 'suspended']).row, now, (key) => keys.has(key))
          )
        }),
      )
      return wanted.toSorted(([, a], [, b]) => Number(a) - Number(b)).map(([run]) => run)
    },
  }
}

type Item = [run: string, n: string, owner: string, row: string, messages: string[]]

/** Whether a run is in this process's share: the shares are about equal, and all processes agree on them. */
function shareOf(process: string, alive: readonly string[]): (run: string) => boolean {
  return (run) => {
    const mine = weigh(run, process)
    return alive.every((id) => id === process || weigh(run, id) < mine)
  }
}

function weigh(run: string, process: string): number {
  let hash = 0x811c9dc5
  for (const text of [process, run]) {
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  }
  // The last characters must change the first bits, too.
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) >>> 0
}
