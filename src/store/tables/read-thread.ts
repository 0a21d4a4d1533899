/** A thread of `query.ts`: runs one job per message, on a connection that only reads. */
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { MillraceError, toErrorValue, type ErrorValue } from '../../part/error.ts'
import type { RunQuery, RunRow } from '../../part/log.ts'
import type { QueryResult, SearchHit, SearchQuery } from '../../part/records.ts'
import type { StatsQuery } from '../../part/stats.ts'
import { createRunTable } from '../sqlite/runs.ts'
import { createRunList } from './run-search.ts'
import { createSearch } from './search.ts'
import { createTotals, type HourFacts, type TotalsReply } from './totals.ts'

export type ReadJob =
  | { kind: 'query'; sql: string; parameters: Record<string, SQLInputValue>; limit: number }
  | { kind: 'list'; query: RunQuery }
  | { kind: 'search'; query: SearchQuery }
  | { kind: 'totals'; query: StatsQuery & { closed: number } }
  | { kind: 'hours'; query: { since: number; until: number; most: number } }

export interface ReadResults {
  query: QueryResult
  list: RunRow[]
  search: SearchHit[]
  totals: TotalsReply
  hours: HourFacts[]
}

/** `fault`: what SQLite says of a statement. */
export type ReadReply = { id: number } & (
  | { result: ReadResults[ReadJob['kind']] }
  | { error: ErrorValue }
  | { fault: string }
)

const db = new DatabaseSync(new URL(String(workerData)), { readOnly: true, timeout: 1000 })

const jobs: { [Kind in ReadJob['kind']]: (job: Extract<ReadJob, { kind: Kind }>) => ReadResults[Kind] } = {
  query: ({ sql, parameters, limit }) => {
    const statement = db.prepare(sql, { returnArrays: true, readBigInts: true })
    const columns = statement.columns().map(({ name }) => name)
    const rows: unknown[][] = []
    for (const row of statement.iterate(parameters) as unknown as Iterable<unknown[]>) {
      if (rows.length === limit) return { columns, rows, truncated: true }
      rows.push(row.map(plain))
    }
    return { columns, rows, truncated: false }
  },
  list: ({ query }) => runs()(query),
  search: ({ query }) => texts()(query),
  totals: ({ query }) => totals().read(query),
  hours: ({ query }) => totals().hours(query),
}

const runs = once(() => createRunList(db, createRunTable(db)))
const texts = once(() => createSearch(db))
const totals = once(() => createTotals(db))

/** Not before it is needed: a thread may only get SQL. */
function once<T>(make: () => T): () => T {
  let made: T | undefined
  return () => (made ??= make())
}

function plain(value: unknown): unknown {
  if (typeof value !== 'bigint') return value
  return Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
}

function run<Kind extends ReadJob['kind']>(job: Extract<ReadJob, { kind: Kind }>): ReadResults[Kind] {
  return jobs[job.kind as Kind](job)
}

parentPort!.on('message', ({ id, job }: { id: number; job: ReadJob }) => {
  const reply = (content: object) => parentPort!.postMessage({ id, ...content })
  try {
    reply({ result: run(job) })
  } catch (error) {
    if (error instanceof MillraceError) reply({ error: toErrorValue(error) })
    else reply({ fault: (error as Error).message })
  }
})
