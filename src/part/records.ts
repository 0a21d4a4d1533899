/**
 * Queries of recorded runs beyond their logs: SQL, search, the events of a run as rows. All of it is derived from the log in the
 * background and can be built again from it; no append waits for it.
 */

import type { OwnerFilter } from './principal.ts'
import type { StatsQuery, Totals } from './stats.ts'

/** Which events of a run to read. Conditions are combined with AND. */
export interface StreamEventQuery {
  /** Only events of these types. */
  types?: readonly string[]
  /** At most this many. Default: all. */
  limit?: number
  /** Only events with a greater `seq`. Default 0. */
  after?: number
}

/** An entry of a run as a row of `agent_stream_events`. */
export interface StreamEvent {
  /** `<run>:<seq>`. */
  id: string
  seq: number
  /** The execution that emitted it: the run, a called agent or a CLI agent. */
  agentId: string
  eventType: string
  /** The id of the tool call, the same in its call and in its result; else the id of the text or reasoning block. */
  eventId?: string
  toolName?: string
  /** The text of a delta; else the part as JSON. */
  content?: string
  /** Epoch ms. */
  timestamp: number
  /** ISO 8601. */
  createdAt: string
}

/** The result of a query. Values are strings, numbers, null, or bytes. */
export interface QueryResult {
  columns: string[]
  rows: unknown[][]
  /** There are more rows than the limit. */
  truncated: boolean
}

export interface QueryOptions {
  /** At most this many rows. Default 10,000. */
  limit?: number
  /** How long it may take, in ms. Then it is stopped and rejects with `bad-query`. Default 30,000. */
  timeoutMs?: number
  /** It reads little: it does not wait behind long queries, and lists wait for it. */
  isShort?: boolean
  /** Values of named parameters, without their colon: `{ run: 'run_1' }` for `:run`. */
  parameters?: Record<string, string | number | null>
}

/** A place in a run where the words of a search were found. */
export interface SearchHit {
  run: string
  threadId: string
  seq: number
  /** The match: a text of the model, of the user, the input or the output of a tool. */
  kind: 'text' | 'reasoning' | 'user' | 'tool-input' | 'tool-output'
  toolName?: string
  /** The words around the match, at most 200 characters. */
  excerpt: string
  timestamp: number
}

export interface SearchQuery extends OwnerFilter {
  /** Words that must all occur, in any order; `"a phrase"` and `word*` are understood. */
  q: string
  agent?: string
  threadId?: string
  kinds?: readonly SearchHit['kind'][]
  /** 1–1000, default 50. The newest run first, and of each run its last text. */
  limit?: number
}

export interface Records {
  /** Resolves when everything stored before the call is in the tables. */
  settle(): Promise<void>
  /** Whether something stored is not in the tables yet. A store that only reads cannot change that. */
  isBehind(): Promise<boolean>
  /** Runs one read-only SQL statement. Rejects with `bad-query`, which names the fault. */
  query(sql: string, options?: QueryOptions): Promise<QueryResult>
  /** The events of a run, ascending. */
  streamEvents(run: string, query?: StreamEventQuery): Promise<StreamEvent[]>
  search(query: SearchQuery): Promise<SearchHit[]>
  /** Totals of a time. Percentiles of a closed hour are off by at most 1 %. */
  totals(query: StatsQuery): Promise<Totals>
  /**
   * Empties the tables and builds them again from the log. `tell` gets the number of runs done and of all, and the part of the log that was read.
   * `slice`: ms for which nothing else runs in this process, 3 by default. Longer ones are fewer commits.
   */
  reindex(tell?: (done: number, of: number, part: number) => void, options?: { slice?: number }): Promise<void>
}
