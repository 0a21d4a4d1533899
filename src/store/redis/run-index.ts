/**
 * Lists of runs. Each partition gives its own, newest first, and they are merged by `n`. What is looked for in titles is found by what
 * begins at each of their characters: see index-script.ts.
 */
import type { DueRun, RunIndex, RunQuery } from '../../part/log.ts'
import { decodeView } from '../encode.ts'
import { limitOf, queryWords, statusesOf } from '../run-query.ts'
import { dueAt, publicRow, type StoredRow } from '../run-row.ts'
import { unknownCursor } from '../store-error.ts'
import type { Connection } from './connection.ts'
import { partitions } from './index-script.ts'
import type { Partition } from './keys.ts'
import { listScript } from './list-script.ts'
import { readScript } from './read-script.ts'
import { readSet } from './read-set.ts'
import type { Rows } from './rows.ts'

interface Place {
  run: string
  n: number
}

/** What is known of a partition's list. */
interface Listing {
  partition: Partition
  places: Place[]
  /** An upper bound of what is not known yet, as Redis has it. */
  rest: string
}

const list = readScript(listScript)
/** How many due runs to ask a partition for at once. */
const duePage = 1000

export function createRunIndex(connection: Connection, rows: Rows): Omit<RunIndex, 'keepView'> {
  const { keys, ask } = connection
  const all = Array.from({ length: partitions }, (_, partition): Partition => partition)

  async function rowsOf(runs: readonly string[]): Promise<StoredRow[]> {
    const known = await Promise.all(runs.map((run) => rows.find(run)))
    return known.flatMap((each) => each?.row ?? [])
  }

  async function placeOf(run: string): Promise<string> {
    const key = `${keys.tagOf(run)}:runs`
    const n = (await ask('list runs', key, ['ZSCORE', key, run])) as string | null
    if (n === null) throw unknownCursor(run)
    return n
  }

  async function select(query: RunQuery): Promise<Place[]> {
    const { agent, threadId: thread, idPrefix, since } = query
    const statuses = statusesOf(query.status)
    const limit = limitOf(query)
    const start = query.before === undefined ? '+inf' : `(${await placeOf(query.before)}`
    if (statuses?.length === 0) return []
    const words = [...queryWords(query.q), ...queryWords(query.search)]
    // Of a long list most partitions give about the same share.
    const most = Math.ceil((limit / partitions) * 1.5) + 4
    const conditions = { agent, thread, prefix: idPrefix || undefined, statuses, since, words, most }
    const listings = all.map((partition): Listing => ({ partition, places: [], rest: start }))
    for (;;) {
      const found = listings.flatMap(({ places }) => places).toSorted((a, b) => b.n - a.n)
      const last = found[limit - 1]?.n ?? -Infinity
      const open = listings.filter(({ rest }) => rest !== '' && (rest === '+inf' || Number(rest.slice(1)) > last))
      if (open.length === 0) return found.slice(0, limit)
      await Promise.all(
        open.map(async (listing) => {
          const asked = JSON.stringify({ ...conditions, before: listing.rest })
          const [rest, ...runs] = await list(connection, 'list runs', listing.partition, [asked])
          listing.rest = rest!
          for (let i = 0; i < runs.length; i += 2) listing.places.push({ run: runs[i]!, n: Number(runs[i + 1]) })
        }),
      )
    }
  }

  /** The first due runs of a partition. A claim that was lost may have left some that are not due. */
  async function dueIn(partition: Partition, before: number, limit: number): Promise<DueRun[]> {
    const found: DueRun[] = []
    for (let at = 0; found.length < limit; at += duePage) {
      const page = ['ZRANGEBYSCORE', '-inf', String(before), 'LIMIT', String(at), String(duePage)] as const
      const runs = await readSet<string>(connection, 'list due runs', partition, 'due', [...page])
      for (const row of await rowsOf(runs)) {
        const due = dueAt(row)
        if (due !== undefined && due <= before) found.push({ id: row.id, dueAt: due })
      }
      if (runs.length < duePage) break
    }
    return found
  }

  return {
    async get(run) {
      const known = await rows.load(run)
      return known && publicRow(known.row)
    },
    async list(query = {}) {
      const places = await select(query)
      const found = await rowsOf(places.map(({ run }) => run))
      return found.map(publicRow)
    },
    async due(before, limit = 1000) {
      const found = await Promise.all(all.map((partition) => dueIn(partition, before, limit)))
      return found
        .flat()
        .toSorted((a, b) => a.dueAt - b.dueAt)
        .slice(0, limit)
    },
    async view(run) {
      const key = keys.run(run)
      const asked = await ask(`get the view of run ${run}`, key, ['HMGET', key, 'seq', 'viewSeq', 'view'])
      const [last, seq, view] = asked as (string | null)[]
      // Whoever gets none folds the log, and keeps what comes out. So does who gets a damaged one.
      if (typeof seq !== 'string' || !/^\d+$/u.test(seq) || Number(seq) > Number(last)) return undefined
      try {
        return { seq: Number(seq), view: decodeView(view ?? '') }
      } catch {
        return undefined
      }
    },
  }
}
