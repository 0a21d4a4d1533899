/** The `runs` table: reads, lists and writes rows. */
import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite'
import type { RunQuery, RunRow, RunStatus } from '../part/log.ts'
import { fold, limitOf, queryWords } from './run-row.ts'
import { unknownCursor, unreadableRow } from './store-error.ts'

export interface RunTable {
  get(run: string): RunRow | undefined
  list(query: RunQuery): RunRow[]
  insert(row: RunRow): void
  /** Updates the position; called for every commit. */
  advance(row: RunRow): void
  /** Updates status and usage as well: after suspend, resume, end and model calls. */
  update(row: RunRow): void
}

export function createRunTable(db: DatabaseSync): RunTable {
  const get = db.prepare('SELECT * FROM runs WHERE id = ?')
  const numberOf = db.prepare('SELECT number FROM runs WHERE id = ?')
  const insert = db.prepare(
    `INSERT INTO runs (id, agent, thread_id, parent_run_id, protocol, status, started_at, updated_at, ended_at, last_seq,
       epoch, usage, cost, error, title, title_folded) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const advance = db.prepare('UPDATE runs SET last_seq = ?, updated_at = ?, epoch = ? WHERE id = ?')
  const update = db.prepare(
    `UPDATE runs SET last_seq = ?, updated_at = ?, epoch = ?, status = ?, ended_at = ?, usage = ?, cost = ?, error = ?
     WHERE id = ?`,
  )

  return {
    get(run) {
      const row = get.get(run)
      return row && toRow(row)
    },
    list(query) {
      const { where, values } = toWhere(query)
      if (query.before !== undefined) {
        const cursor = numberOf.get(query.before)
        if (!cursor) throw unknownCursor(query.before)
        where.push('number < ?')
        values.push(cursor.number!)
      }
      const condition = where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`
      return db
        .prepare(`SELECT * FROM runs ${condition} ORDER BY number DESC LIMIT ?`)
        .all(...values, limitOf(query))
        .map(toRow)
    },
    insert(row) {
      insert.run(
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
        row.title ?? null,
        row.title === undefined ? null : fold(row.title),
      )
    },
    advance({ id, lastSeq, updatedAt, epoch }) {
      advance.run(lastSeq, updatedAt, epoch, id)
    },
    update({ id, lastSeq, updatedAt, epoch, status, endedAt, usage, cost, error }) {
      const ended = [endedAt ?? null, toJson(usage), cost ?? null, toJson(error)]
      update.run(lastSeq, updatedAt, epoch, status, ...ended, id)
    },
  }
}

function toWhere({ agent, threadId, status, idPrefix, q }: RunQuery): { where: string[]; values: SQLInputValue[] } {
  const where: string[] = []
  const values: SQLInputValue[] = []
  const add = (condition: string, value: string | undefined) => {
    if (value === undefined) return
    where.push(condition)
    values.push(value)
  }
  add('agent = ?', agent)
  add('thread_id = ?', threadId)
  add('status = ?', status)
  // A range can use the index.
  add('id >= ?', idPrefix)
  add('id < ?', idPrefix === undefined ? undefined : `${idPrefix}\u{10ffff}`)
  for (const word of queryWords(q)) add('instr(title_folded, ?) > 0', word)
  return { where, values }
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
  if (row.ended_at !== null) result.endedAt = Number(row.ended_at)
  if (row.error !== null) result.error = fromJson('error', row.error, result)
  if (row.usage !== null) result.usage = fromJson('usage', row.usage, result)
  if (row.cost !== null) result.cost = Number(row.cost)
  if (row.title !== null) result.title = String(row.title)
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

function toJson(value: object | undefined): string | null {
  return value === undefined ? null : JSON.stringify(value)
}
