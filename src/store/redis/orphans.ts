/**
 * Finds runs without an owner. Those of a dead process are shared out among the living: each first takes its own part, and after a
 * while what others have not taken.
 */
import { isWanted } from '../run-row.ts'
import type { Beats } from './beats.ts'
import type { Connection } from './connection.ts'
import { partitions } from './index-script.ts'
import type { Partition } from './keys.ts'
import { readRow } from './stored-row.ts'
import { listed, operation } from './script.ts'
import { isFailed, runScript } from './write-queue.ts'
import { redisFailed } from './damage-script.ts'

type Operate = (partition: Partition, name: string, ...args: (string | number)[]) => Promise<unknown>

/** One operation that may be done twice, beside the queue of writes. */
export function createOperate(connection: Connection): Operate {
  return async (partition, name, ...args) => {
    const [result] = await runScript(connection, partition, operation(name, args))
    if (isFailed(result)) throw redisFailed(`cannot look after the runs of a partition`, connection.url, result)
    return result
  }
}

export const everyPartition: readonly Partition[] = Array.from({ length: partitions }, (_, i) => i)

/** What others have not taken after so long is everybody's, in ms. */
const ownPart = 600
/** A dead process without runs is asked for so often, in ms: it may have been paused between a claim and its death. */
const askAgain = 3000
/** Runs of a dead process that nobody takes, because their tools are missing, are looked for less and less often; at least so often, in ms. */
const askSeldom = 30_000
const pageLength = 200
/** A run that nobody has taken is named again after so long, in ms. */
const nameAgain = 1500

export interface Orphans {
  /** Runs of dead processes that this one should take now. */
  ofDead(): Promise<string[]>
  /** The processes that own active runs. Reads the names of all active runs. */
  owners(): Promise<Set<string>>
  /** Suspended runs that were due, answered or stopped, oldest first. Reads all suspended runs. */
  suspended(): Promise<string[]>
}

export function createOrphans(operate: Operate, process: string, beats: Beats): Orphans {
  /** Dead processes: since when, and when they are asked for next. */
  const found = new Map<string, { since: number; next: number }>()
  /** When a run was named last. */
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

  /** It is not named again while somebody is about to take it. */
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

/** Whether a run is this process's to take first: about the same number for each, and all agree. */
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
  // The last characters must change the first bits too.
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) >>> 0
}
