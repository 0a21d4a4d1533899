/** The `runs` table: reads, lists and writes rows. */
import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite'
import type { DueRun, RunQuery, RunRow, RunStatus } from '../../part/log.ts'
import type { OwnerFilter } from '../../part/principal.ts'
import { fold, limitOf, statusesOf } from '../run-query.ts'
import { dueAt, isShown, type OpenRequest, type StoredRow } from '../run-row.ts'
import { unknownCursor, unreadableRow } from '../store-error.ts'

export interface RunTable {
  get(run: string): RunRow | undefined
  /** The row with store-only fields. */
  stored(run: string): StoredRow | undefined
  /** `q` and `search` are for `tables/run-search.ts`. */
  list(query: RunQuery): RunRow[]
  /** Those of these runs that fit, with their numbers, newest first. `before` and `limit` are not looked at. */
  among(query: RunQuery, numbers: readonly number[]): [number: number, row: RunRow][]
  /** All runs that may fit by one of the conditions, newest first; undefined if they are many. */
  few(query: RunQuery): number[] | undefined
  /** Throws `unknown-run`, also for a run that the filter does not show. */
  numberOf(run: string, filter: OwnerFilter): number
  due(before: number, limit: number): DueRun[]
  /** Orphans, oldest first: running runs that are not `owned`; and suspended runs that are due, have a reply or a stop, or have no open request. */
  left(now: number, owned: (run: string) => boolean): string[]
  /** Assigns the row its number. `isFree`: no run is being deleted, whose number might be reused. */
  insert(row: StoredRow, isFree?: boolean): void
  /** The run, a fork, continues as another agent or with another message. */
  rename(row: StoredRow): void
  /** Updates the position; called for every commit. */
  advance(row: StoredRow): void
  /** Updates all fields that may change: after suspend, resume, end, requests, responses, model calls, errors and the first token. */
  update(row: StoredRow): void
}

/** Runs that are looked at one by one for a list. */
const mostFew = 500

export function createRunTable(db: DatabaseSync): RunTable {
  const get = db.prepare('SELECT * FROM runs WHERE id = ?')
  const findNumber = db.prepare('SELECT number, owner, tenant FROM runs WHERE id = ?')
  // The number of a run that is being deleted is not reused before its last row is gone. Without such a run SQLite chooses it.
  const insert = db.prepare(
    `INSERT INTO runs (number, id, agent, thread_id, parent_run_id, protocol, status, started_at, updated_at, ended_at, last_seq,
       epoch, usage, cost, error, title, title_folded, requests, due_at, previous_run_id, first_token_ms, errors, last_tick,
       foreign_seq, suspended_ms, suspended_at, owner, tenant, models)
     VALUES (iif(?, NULL, (SELECT max(run) + 1 FROM dropped WHERE run > (SELECT coalesce(max(number), 0) FROM runs))),
       ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const advance = db.prepare('UPDATE runs SET last_seq = ?, updated_at = ?, epoch = ?, last_tick = ? WHERE number = ?')
  const rename = db.prepare('UPDATE runs SET agent = ?, title = ?, title_folded = ? WHERE id = ?')
  const update = db.prepare(
    `UPDATE runs SET last_seq = ?, updated_at = ?, epoch = ?, status = ?, ended_at = ?, usage = ?, cost = ?, error = ?,
       requests = ?, due_at = ?, first_token_ms = ?, errors = ?, suspended_ms = ?, suspended_at = ?, last_tick = ?, models = ?
     WHERE number = ?`,
  )
  const lists = new Map<string, StatementSync>()
  const arrays = { returnArrays: true }
  const between = db.prepare(`SELECT number FROM runs WHERE ${inTime} LIMIT ${mostFew + 1}`, arrays)
  const withStatus = db.prepare(`SELECT number FROM runs WHERE status = ? LIMIT ${mostFew + 1}`, arrays)
  const withAgent = db.prepare(`SELECT number FROM runs WHERE agent = ? LIMIT ${mostFew + 1}`, arrays)
  const withTenant = db.prepare(`SELECT number FROM runs WHERE ${ofTenant} LIMIT ${mostFew + 1}`, arrays)
  const withBoth = db.prepare(`SELECT number FROM runs WHERE ${ofOwner} AND tenant = ? LIMIT ${mostFew + 1}`, arrays)
  const withPrefix = db.prepare(`SELECT number FROM runs WHERE id >= ? AND id < ? LIMIT ${mostFew + 1}`, arrays)
  // `+?`, because SQLite prepares a statement anew each time a value is bound to a parameter that is its whole LIMIT.
  const due = db.prepare('SELECT id, due_at FROM runs WHERE due_at <= ? ORDER BY due_at, number LIMIT +?')
  const running = db.prepare(`SELECT id FROM runs WHERE status = 'running' ORDER BY number`)
  const answered = db.prepare(
    `SELECT id FROM runs WHERE status = 'suspended' AND (
       requests IS NULL OR due_at <= ?
       OR EXISTS (SELECT 1 FROM inbox WHERE run = runs.id AND key = 'stop')
       OR EXISTS (
         SELECT 1 FROM json_each(runs.requests) AS request
         JOIN inbox ON inbox.run = runs.id AND inbox.key = 'answer:' || (request.value ->> 'id')
       )
     ) ORDER BY number`,
  )

  function listing(selects: string): StatementSync {
    const known = lists.get(selects)
    if (known !== undefined) return known
    const statement = db.prepare(`${selects} ORDER BY number DESC LIMIT +?`)
    lists.set(selects, statement)
    return statement
  }

  function numberOf(run: string, filter: OwnerFilter): number {
    const found = findNumber.get(run)
    if (!found || !isShown({ owner: String(found.owner), tenant: String(found.tenant) }, filter))
      throw unknownCursor(run)
    return Number(found.number)
  }

  function select(query: RunQuery, before?: number, numbers?: readonly number[]): Record<string, SQLOutputValue>[] {
    const few = numbers ?? fewOf(query)
    const index = few === undefined ? indexOf(query) : 'few'
    const conditions = toWhere(query, index)
    if (before !== undefined) conditions.push(['number < ?', before])
    if (few !== undefined) conditions.push(['number IN (SELECT value FROM json_each(?))', JSON.stringify(few)])
    const statuses = statusesOf(query.status)
    // Several of the index of statuses, each in its order; SQLite merges them.
    const each = index === undefined ? statuses : undefined
    if (each === undefined && statuses !== undefined)
      conditions.push(['+status IN (SELECT value FROM json_each(?))', JSON.stringify(statuses)])
    const selects = each?.map((status) => [...conditions, ['status = ?', status] as const]) ?? [conditions]
    if (selects.length === 0) return []
    const sql = selects.map((some) => {
      const where = some.map(([condition]) => condition).join(' AND ')
      return where === '' ? 'SELECT * FROM runs' : `SELECT * FROM runs WHERE ${where}`
    })
    const values = selects.flatMap((some) => some.flatMap(([, ...given]) => given))
    return listing(sql.join(' UNION ALL ')).all(...values, numbers?.length ?? limitOf(query))
  }

  /** The runs of these statuses, if they are few; the newest first. */
  function ofStatus({ status }: RunQuery): number[] | undefined {
    const numbers: number[] = []
    for (const each of statusesOf(status) ?? []) {
      for (const [number] of withStatus.all(each) as unknown as number[][]) numbers.push(number!)
      if (numbers.length > mostFew) return undefined
    }
    return status === undefined ? undefined : numbers.sort((a, b) => b - a)
  }

  /**
   * The runs of a time, or with a prefix, if they are few: then only these are looked at. Otherwise the page is soon full. Of an owner or a tenant
   * it may not be: those of an agent or a status may be few among its runs.
   */
  function fewOf(query: RunQuery): number[] | undefined {
    const { since, until, idPrefix = '', agent, owner, tenant, threadId } = query
    const isOwned = (owner !== undefined || tenant !== undefined) && threadId === undefined
    const found = firstFew([
      (since ?? until) !== undefined && (() => between.all(...timesOf(query))),
      idPrefix !== '' && (() => withPrefix.all(idPrefix, `${idPrefix}\u{10ffff}`)),
      isOwned && agent !== undefined && (() => withAgent.all(agent)),
    ])
    return found ?? (isOwned ? ofStatus(query) : undefined)
  }

  /** The runs of an owner or a tenant, if they are few; the newest first. */
  function owned(query: RunQuery): number[] | undefined {
    const { owner, tenant } = query
    const index = ownerIndexOf(query)
    return firstFew([
      index === 'owner' && (() => withBoth.all(owner!, tenant!)),
      index === 'tenant' && (() => withTenant.all(tenant!)),
    ])
  }

  /** Of several ways to find all runs that fit, the first that finds few; the newest first. */
  function firstFew(ways: readonly (false | (() => unknown[]))[]): number[] | undefined {
    for (const way of ways) {
      const numbers = way && (way() as number[][])
      if (numbers && numbers.length <= mostFew) return numbers.map(([number]) => number!).sort((a, b) => b - a)
    }
    return undefined
  }

  return {
    get(run) {
      const row = get.get(run)
      return row && toRow(row)
    },
    stored(run) {
      const row = get.get(run)
      if (!row) return undefined
      const open = row.requests === null ? [] : (JSON.parse(String(row.requests)) as OpenRequest[])
      const lastTick = row.last_tick === null ? undefined : Number(row.last_tick)
      const [suspendedMs, suspendedAt] = [row.suspended_ms, row.suspended_at].map((ms) =>
        ms === null ? undefined : Number(ms),
      )
      return { ...toRow(row), open, lastTick, number: Number(row.number), suspendedMs, suspendedAt }
    },
    due: (before, limit) =>
      // Infinity means no limit.
      due
        .all(before, Number.isFinite(limit) ? limit : -1)
        .map(({ id, due_at: at }) => ({ id: String(id), dueAt: Number(at) })),
    left(now, owned) {
      const orphans = running.all().map(({ id }) => String(id))
      return [...orphans.filter((id) => !owned(id)), ...answered.all(now).map(({ id }) => String(id))]
    },
    list: (query) => select(query, query.before === undefined ? undefined : numberOf(query.before, query)).map(toRow),
    among: (query, numbers) => select(query, undefined, numbers).map((row) => [Number(row.number), toRow(row)]),
    few: (query) => fewOf(query) ?? owned(query) ?? ofStatus(query),
    numberOf,
    insert(row, isFree = false) {
      const { lastInsertRowid } = insert.run(
        isFree ? 1 : 0,
        row.id,
        row.agent,
        row.threadId,
        row.parentRunId ?? null,
        row.protocol,
        row.status,
        row.startedAt,
        row.updatedAt,
        row.endedAt ?? null,
        row.lastSeq,
        row.epoch,
        toJson(row.usage),
        row.cost ?? null,
        toJson(row.error),
        ...titleColumns(row.title),
        toRequests(row),
        dueAt(row) ?? null,
        row.previousRunId ?? null,
        row.firstTokenMs ?? null,
        row.errors ?? null,
        row.lastTick ?? null,
        row.foreign ?? null,
        row.suspendedMs ?? null,
        row.suspendedAt ?? null,
        row.owner ?? '',
        row.tenant ?? '',
        toJson(row.models),
      )
      row.number = Number(lastInsertRowid)
    },
    rename({ id, agent, title }) {
      rename.run(agent, ...titleColumns(title), id)
    },
    advance({ number, lastSeq, updatedAt, epoch, lastTick }) {
      advance.run(lastSeq, updatedAt, epoch, lastTick ?? null, number!)
    },
    update(row) {
      const { number, lastSeq, updatedAt, epoch, status, endedAt, usage, cost, error } = row
      const ended = [endedAt ?? null, toJson(usage), cost ?? null, toJson(error)]
      const columns = [toRequests(row), dueAt(row) ?? null, row.firstTokenMs ?? null, row.errors ?? null]
      const waited = [row.suspendedMs ?? null, row.suspendedAt ?? null]
      update.run(
        lastSeq,
        updatedAt,
        epoch,
        status,
        ...ended,
        ...columns,
        ...waited,
        row.lastTick ?? null,
        toJson(row.models),
        number!,
      )
    },
  }
}

/** The title, and the same for searches. */
function titleColumns(title: string | undefined): [string | null, string | null] {
  return title === undefined ? [null, null] : [title, fold(title)]
}

type Condition = readonly [condition: string, ...values: SQLInputValue[]]

/** Their indexes have no runs without one. */
const ofOwner = `owner = ? AND owner <> ''`
/** The index has the order of the list for an owner of one tenant only. */
const ofOwners = `number IN (SELECT number FROM runs WHERE ${ofOwner})`
const ofTenant = `tenant = ? AND tenant <> ''`

/** The index that gives the list its order. `few`: none, because the runs are known. Undefined: that of statuses, or none. */
type ListIndex = 'few' | 'thread' | 'owner' | 'owners' | 'tenant' | 'agent' | undefined

/** What others have costs nothing where there is an index of what a user or a tenant has. */
function indexOf(query: RunQuery): ListIndex {
  if (query.threadId !== undefined) return 'thread'
  return ownerIndexOf(query) ?? (query.agent === undefined ? undefined : 'agent')
}

/** `owners`: an owner of any tenant. */
function ownerIndexOf({ owner = '', tenant }: OwnerFilter): 'owner' | 'owners' | 'tenant' | undefined {
  if (owner !== '') return tenant === undefined ? 'owners' : 'owner'
  return tenant === undefined || tenant === '' ? undefined : 'tenant'
}

/** Epoch ms: the first, and the first behind it. */
const inTime = 'started_at >= ? AND started_at < ?'
const lastTime = 8.64e15

function timesOf({ since = 0, until = lastTime }: RunQuery): [since: number, until: number] {
  return [since, until]
}

/** Conditions that have no index: they are looked at run by run. */
const plain = {
  protocol: '+protocol = ?',
  model: 'EXISTS (SELECT 1 FROM json_each(runs.models) WHERE value = ?)',
  minCost: 'cost >= ?',
  maxCost: 'cost <= ?',
  minMs: 'coalesce(ended_at, updated_at) - started_at >= ?',
  maxMs: 'coalesce(ended_at, updated_at) - started_at <= ?',
} as const

/** Whether the list may look at many runs, which is done in a thread. */
export function isLong(query: RunQuery): boolean {
  const names = Object.keys(plain) as (keyof typeof plain)[]
  if (limitOf(query) > 1000) return true
  return query.sort !== undefined || query.until !== undefined || names.some((name) => query[name] !== undefined)
}

/** All but the status. The `+` keeps SQLite from an index that has another order than the list. */
function toWhere(query: RunQuery, index: ListIndex): Condition[] {
  const { agent, threadId, owner, tenant, since, until, idPrefix } = query
  const where: Condition[] = []
  if (agent !== undefined) where.push([index === 'agent' ? 'agent = ?' : '+agent = ?', agent])
  if (threadId !== undefined) where.push([index === 'thread' ? 'thread_id = ?' : '+thread_id = ?', threadId])
  if (owner !== undefined)
    where.push([index === 'owner' ? ofOwner : index === 'owners' ? ofOwners : '+owner = ?', owner])
  if (tenant !== undefined) {
    where.push([index === 'tenant' ? ofTenant : index === 'owner' ? 'tenant = ?' : '+tenant = ?', tenant])
  }
  if (until !== undefined && index === undefined)
    where.push([`number IN (SELECT number FROM runs WHERE ${inTime})`, ...timesOf(query)])
  else {
    if (since !== undefined) where.push(['+started_at >= ?', since])
    if (until !== undefined) where.push(['+started_at < ?', until])
  }
  for (const name of Object.keys(plain) as (keyof typeof plain)[]) {
    const value = query[name]
    if (value !== undefined) where.push([plain[name], value])
  }
  if (idPrefix !== undefined) where.push(['+id >= ? AND +id < ?', idPrefix, `${idPrefix}\u{10ffff}`])
  return where
}

function toRow(row: Record<string, SQLOutputValue>): RunRow {
  const result: RunRow = {
    id: String(row.id),
    agent: String(row.agent),
    threadId: String(row.thread_id),
    protocol: String(row.protocol),
    status: String(row.status) as RunStatus,
    startedAt: Number(row.started_at),
    updatedAt: Number(row.updated_at),
    lastSeq: Number(row.last_seq),
    epoch: Number(row.epoch),
  }
  if (row.parent_run_id !== null) result.parentRunId = String(row.parent_run_id)
  if (row.previous_run_id !== null) result.previousRunId = String(row.previous_run_id)
  if (row.owner !== '') result.owner = String(row.owner)
  if (row.tenant !== '') result.tenant = String(row.tenant)
  if (row.foreign_seq !== null) result.foreign = Number(row.foreign_seq)
  if (row.first_token_ms !== null) result.firstTokenMs = Number(row.first_token_ms)
  if (row.errors !== null) result.errors = Number(row.errors)
  if (row.ended_at !== null) result.endedAt = Number(row.ended_at)
  if (row.error !== null) result.error = fromJson('error', row.error, result)
  if (row.usage !== null) result.usage = fromJson('usage', row.usage, result)
  if (row.cost !== null) result.cost = Number(row.cost)
  if (row.title !== null) result.title = String(row.title)
  if (row.models !== null) result.models = fromJson('models', row.models, result)
  if (Number(row.compacted_at) > 0) result.compactedAt = Number(row.compacted_at)
  return result
}

/** One unreadable row must not hide the rest of the list. */
function fromJson(column: string, value: SQLOutputValue | undefined, row: RunRow) {
  try {
    return JSON.parse(String(value))
  } catch {
    const error = {
      code: unreadableRow,
      message: `The column ${column} of this run in the database is not valid JSON.`,
    }
    row.error = error
    return column === 'error' ? error : undefined
  }
}

function toRequests({ open }: StoredRow): string | null {
  return open.length === 0 ? null : JSON.stringify(open)
}

function toJson(value: object | undefined): string | null {
  return value === undefined ? null : JSON.stringify(value)
}
