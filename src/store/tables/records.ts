/** Implements `Store.records` of a SQLite file with the tables. */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import type { Log, RunQuery, RunRow } from '../../part/log.ts'
import type { Records, StreamEvent } from '../../part/records.ts'
import type { StatsQuery } from '../../part/stats.ts'
import { eventsOfLog } from '../stream-events.ts'
import { readingUrl } from '../sqlite/read-only.ts'
import { hasShared, restoreTexts } from '../shared-texts.ts'
import { createTexts } from '../sqlite/texts.ts'
import { behind, type Indexer } from './indexer.ts'
import { createQueries } from './query.ts'
import { hourLength } from './facts.ts'
import { closedAt, keepHours } from './hours.ts'

/** Hours that are read, and written, together. */
const hoursAtOnce = 12

export interface RecordsContext {
  db: DatabaseSync
  /** The file. */
  path: string
  log: Log
  /** Absent in a read-only store. */
  indexer: Indexer | undefined
  /** Runs `apply` in a transaction. `pages`: approximate number of pages that it changes. */
  write<T>(what: string, apply: () => T, pages: number): Promise<T>
  /** Default `Date.now`. */
  now?: (() => number) | undefined
  /** Runs a read; failures become `store-failed`. */
  reading<T>(what: string, read: () => T): T
}

export interface SqliteRecords extends Records {
  /** `RunIndex.list` of a query that may look at many runs, in a thread. */
  listRuns(query: RunQuery): Promise<RunRow[]>
  close(): Promise<void>
}

export function createRecords({
  db,
  path,
  log,
  indexer,
  reading,
  write,
  now = Date.now,
}: RecordsContext): SqliteRecords {
  const queries = createQueries(() => readingUrl(path))
  const isBehind = db.prepare(behind.replace('?', '(SELECT coalesce(max(id), 0) FROM ticks)'))
  const filled = db.prepare(
    'SELECT f.run, f.seq, r.last_seq FROM indexed_runs f JOIN runs r ON r.number = f.run WHERE r.id = ?',
  )
  const texts = createTexts(db)
  const restoreLine = (line: string) =>
    hasShared(line) ? JSON.stringify(restoreTexts(JSON.parse(line), texts.find)) : line
  const agents = db.prepare(`SELECT step FROM indexed_agents WHERE run = ? AND step <> ''`)

  let keeping: Promise<void> | undefined
  let isClosed = false

  /** Keeps the closed hours of a time, a few at a time. What fails is kept after another question. */
  async function keep({ since, until }: StatsQuery): Promise<void> {
    const query = { since, until: Math.min(until, closedAt(now())), most: hoursAtOnce }
    for (let found; found === undefined || found.length > 0;) {
      try {
        found = await queries.ask({ kind: 'hours', query })
        const hours = found
        if (isClosed || hours.length === 0) return
        await write('keep statistics', () => keepHours(db, hours), 4 * hours.length)
        // Those after it are kept, or have changed since.
        query.until = hours.at(-1)!.hour * hourLength
      } catch {
        return
      }
    }
  }

  return {
    settle: async () => indexer?.settle(),
    isBehind: async () => reading('look at the tables', () => isBehind.get() !== undefined),
    query: (sql, options) => queries.run(sql, options),
    async streamEvents(run, query = {}) {
      const { types, limit = Infinity, after = 0 } = query
      const state = reading('read events', () => filled.get(run))
      if (state === undefined || types === undefined || types.some((type) => type.endsWith('-delta'))) {
        return eventsOfLog(log, run, query)
      }
      const found = reading('read events', () => {
        const most = Number.isFinite(limit) ? limit : -1
        return db
          .prepare(eventsQuery(types.length))
          .all(state.run!, after, ...types, most)
          .map((row) => toEvent(row, restoreLine))
      })
      const seq = Number(state.seq)
      if (found.length >= limit || seq >= Number(state.last_seq)) return found
      // Entries that are not in the tables yet.
      const called = agents.all(state.run!).map(({ step }) => String(step))
      const rest = { types, after: Math.max(after, seq), limit: limit - found.length }
      return [...found, ...(await eventsOfLog(log, run, rest, called))]
    },
    search: async (query) => {
      reading('search', () => undefined)
      return queries.ask({ kind: 'search', query })
    },
    listRuns: async (query) => queries.ask({ kind: 'list', query }),
    totals: async (query) => {
      reading('read statistics', () => undefined)
      const { totals, isPartlyKept } = await queries.ask({
        kind: 'totals',
        query: { ...query, closed: closedAt(now()) },
      })
      if (isPartlyKept && indexer !== undefined) keeping ??= keep(query).finally(() => (keeping = undefined))
      return totals
    },
    async reindex(tell, { slice } = {}) {
      await indexer?.rebuild(tell, slice)
    },
    close: async () => {
      isClosed = true
      await queries.close()
      await keeping
    },
  }
}

function eventsQuery(types: number): string {
  const wanted = Array.from({ length: types }, () => '?').join(', ')
  return `SELECT a.run_id || ':' || e.seq AS id, e.seq, a.id AS agent, e.type, e.event_id, e.tool_name, e.timestamp,
      CAST(substr(CAST(k.entries AS BLOB), e.at, e.length) AS TEXT) AS content
    FROM indexed_events e JOIN indexed_agents a ON a.number = e.agent JOIN ticks k ON k.id = e.tick
    WHERE e.run = ? AND e.seq > ? AND e.type IN (${wanted}) ORDER BY e.seq LIMIT ?`
}

function toEvent(row: Record<string, SQLOutputValue>, restoreLine: (line: string) => string): StreamEvent {
  const timestamp = Number(row.timestamp)
  return {
    id: row.id as string,
    seq: Number(row.seq),
    agentId: row.agent as string,
    eventType: row.type as string,
    ...(row.event_id !== null && { eventId: row.event_id as string }),
    ...(row.tool_name !== null && { toolName: row.tool_name as string }),
    content: restoreLine(row.content as string),
    timestamp,
    createdAt: new Date(timestamp).toISOString(),
  }
}
