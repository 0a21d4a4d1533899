/** Which runs may be deleted, and their deletion. */
import { hasEnded, type RunIndex } from '../../part/log.ts'
import type { UpkeepPage } from '../../part/upkeep.ts'
import type { Archive } from '../archive/archive.ts'
import type { StoredRow } from '../run-row.ts'
import type { Connection } from './connection.ts'
import type { EndedRuns } from './ended-runs.ts'
import { partitions } from './index-script.ts'
import { partitionOf, type Partition } from './keys.ts'
import type { Rows } from './rows.ts'

/** How many runs are looked at in one go. */
const window = 100
/** Runs of a thread in one page. */
const page = 1000

interface Context {
  connection: Connection
  ended: EndedRuns
  rows: Rows
  runs: Pick<RunIndex, 'list'>
  archive: Archive | undefined
}

export function createExpiry({ connection, ended, rows, runs, archive }: Context) {
  const { keys, ask } = connection
  const all = Array.from({ length: partitions }, (_, partition): Partition => partition)

  /** The first runs after a place, in the order in which they began. */
  async function runsAfter(after: number): Promise<[run: string, n: number][]> {
    const range = [`(${after}`, '+inf', 'WITHSCORES', 'LIMIT', '0', String(window)]
    const found = await Promise.all(
      all.map(async (partition) => {
        const key = `${keys.tag(partition)}:runs`
        return (await ask('list runs', key, ['ZRANGEBYSCORE', key, ...range])) as [string, number][]
      }),
    )
    return found
      .flat()
      .toSorted((a, b) => a[1] - b[1])
      .slice(0, window)
  }

  /** Whether nothing goes on in a thread, nor was it used at or after a moment. */
  async function isIdle(threadId: string, idleBefore: number): Promise<boolean> {
    const active = await runs.list({ threadId, status: ['running', 'suspended'], limit: 1 })
    if (active.length > 0) return false
    for (let before: string | undefined; idleBefore < Infinity;) {
      const some = await runs.list({ threadId, limit: page, ...(before !== undefined && { before }) })
      if (some.some(({ updatedAt }) => updatedAt >= idleBefore)) return false
      if (some.length < page) break
      before = some.at(-1)!.id
    }
    return true
  }

  async function isFree(row: StoredRow, isThreadIdle: (threadId: string) => Promise<boolean>): Promise<boolean> {
    if (!hasEnded(row.status) || !(await isThreadIdle(row.threadId))) return false
    const caller = row.parentRunId === undefined ? undefined : await rows.find(row.parentRunId)
    return caller === undefined || hasEnded(caller.row.status)
  }

  async function bytesOf(run: string): Promise<number> {
    const used = [keys.run(run), keys.log(run)].map((key) => ask('read the size', key, ['MEMORY', 'USAGE', key]))
    return (await Promise.all(used)).reduce<number>((sum, bytes) => sum + Number(bytes ?? 0), 0)
  }

  /** Removes what is left of a deleted run outside of its partition. `left`: its place in the archive, if it may have one, and its thread. */
  async function complete(run: string, left: string): Promise<void> {
    const end = left.indexOf(' ')
    const [place, threadId] = [left.slice(0, end), left.slice(end + 1)]
    // Who has the archive completes it.
    if (place !== '' && archive === undefined) return
    if (place !== '') await archive!.remove(run, place)
    if ((await runs.list({ threadId, limit: 1 })).length === 0) {
      const inbox = `thread:${threadId}`
      await ask(`delete run ${run}`, keys.inbox(inbox), ['UNLINK', keys.inbox(inbox), keys.messages(inbox)])
    }
    const key = `${keys.tag(partitionOf(run))}:dropped`
    await ask(`delete run ${run}`, key, ['HDEL', key, run])
  }

  /** Completes deletions that a crash has cut off. */
  async function completeAll(): Promise<void> {
    for (const partition of all) {
      const key = `${keys.tag(partition)}:dropped`
      for (const run of (await ask('delete runs', key, ['HKEYS', key])) as string[]) {
        const left = (await ask('delete runs', key, ['HGET', key, run])) as string | null
        // One that is damaged says neither place nor thread.
        if (left !== null) await complete(run, left.includes(' ') ? left : ' ')
      }
    }
  }

  return {
    completeAll,
    async expired(idleBefore: number, after = 0): Promise<UpkeepPage> {
      const places = await runsAfter(after)
      const loaded = await Promise.all(places.map(([run]) => rows.find(run)))
      const found = loaded.flatMap((known) => (known === undefined ? [] : [known.row]))
      const idle = new Map<string, Promise<boolean>>()
      const isThreadIdle = (threadId: string) => {
        if (!idle.has(threadId)) idle.set(threadId, isIdle(threadId, idleBefore))
        return idle.get(threadId)!
      }
      const free: UpkeepPage['runs'] = []
      for (const row of found) {
        if (row.updatedAt < idleBefore && (await isFree(row, isThreadIdle))) {
          free.push({ id: row.id, bytes: await bytesOf(row.id) })
        }
      }
      // Runs are in the order in which they began: those after these are too new.
      const isOver = places.length < window || found.every(({ startedAt }) => startedAt >= idleBefore)
      return isOver ? { runs: free } : { runs: free, next: places.at(-1)![1] }
    },
    async drop(run: string): Promise<boolean> {
      const known = await rows.load(run)
      if (known === undefined || !(await isFree(known.row, (threadId) => isIdle(threadId, Infinity)))) return false
      // A crash may have left it in the archive although it is not said to be there.
      const said = (await ask(`delete run ${run}`, keys.run(run), ['HGET', keys.run(run), 'archive'])) as string | null
      const left = `${said ?? archive?.placeOf(known.row) ?? ''} ${known.row.threadId}`
      if ((await ended.change(`delete run ${run}`, run, 'drop', [left])) !== 1) return false
      await complete(run, left)
      return true
    },
  }
}
