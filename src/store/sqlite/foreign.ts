/**
 * Views, triggers and indexes that users have added to the database. A migration removes them first, so that none blocks it or runs in it, and
 * restores them afterwards. Users' own tables are not touched.
 */
import type { DatabaseSync } from 'node:sqlite'
import { messageOf } from '../../part/error.ts'
import { baseNames } from '../tables/base-tables.ts'
import { views } from '../tables/views.ts'

const logTables = [
  'runs',
  'ticks',
  'tick_groups',
  'inbox',
  'views',
  'forks',
  'dropped',
  'index_state',
  'index_queue',
  'ledger',
  'audit',
  'feedback',
  'test_results',
  'thread_titles',
]
const ownViews: ReadonlySet<string> = new Set(views.map(([name]) => name))
const ownTables: ReadonlySet<string> = new Set([...logTables, ...baseNames])
/** Own indexes of every version. Those of the tables over the log begin with the tables' names. */
const ownIndexes: ReadonlySet<string> = new Set([
  'runs_by_start',
  'runs_by_agent',
  'runs_by_thread',
  'runs_by_thread_end',
  'runs_by_status',
  'runs_by_owner',
  'runs_by_tenant',
  'runs_by_due',
  'runs_to_compact',
  'runs_to_share',
  'forks_by_source',
  'ledger_by_until',
  'audit_by_tenant',
  'test_results_by_test',
  'audit_by_time',
])
const isOwnIndex = (name: string) => ownIndexes.has(name) || /^indexed_[a-z_]+_(?:by|open|that|waiting)/u.test(name)

interface Added {
  type: 'view' | 'trigger' | 'index'
  name: string
  table: string
  sql: string
  /** It was usable before. */
  worked: boolean
}

/** Removes them. The returned function restores them; `warn` gets a line about each that no longer works. Call both in one transaction. */
export function setAside(db: DatabaseSync): (warn: (line: string) => void) => void {
  const added = list(db)
  for (const { type, name } of added.toReversed()) db.exec(`DROP ${type.toUpperCase()} IF EXISTS ${quote(name)}`)
  return (warn) => {
    for (const each of added) putBack(db, each, warn)
    for (const { type, name, worked } of added) {
      const fault = type === 'view' && worked ? faultOfView(db, name) : undefined
      if (fault !== undefined)
        warn(`your view ${quote(name)} does not work any more: ${fault}. It was kept: correct or drop it.`)
    }
  }
}

function list(db: DatabaseSync): Added[] {
  // Before the tables over the log, Millrace had no views.
  const hasViews = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'index_state'").get() !== undefined
  const isTheirs: Record<string, (name: string, table: string) => boolean> = {
    view: (name) => !hasViews || !ownViews.has(name),
    trigger: () => true,
    index: (name, table) => ownTables.has(table) && !isOwnIndex(name),
  }
  return db
    .prepare(
      `SELECT type, name, tbl_name AS "table", sql FROM sqlite_schema
       WHERE type IN ('view', 'trigger', 'index') AND sql IS NOT NULL ORDER BY type = 'trigger', rowid`,
    )
    .all()
    .map((row) => row as unknown as Added)
    .filter(({ type, name, table }) => isTheirs[type]!(name, table))
    .map((each) => ({ ...each, worked: each.type !== 'view' || faultOfView(db, each.name) === undefined }))
}

function putBack(db: DatabaseSync, { type, name, table, sql }: Added, warn: (line: string) => void): void {
  const isTaken = db.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(name) !== undefined
  if (type === 'view' && isTaken) {
    const other = freeName(db, name)
    db.exec(sql.replace(nameOfView, `CREATE VIEW ${quote(other)}`))
    return warn(`Millrace has a view ${quote(name)} of its own now: yours is ${quote(other)}.`)
  }
  try {
    db.exec(sql)
    if (type !== 'trigger' || (!ownTables.has(table) && !ownViews.has(table))) return
    const fault = faultOfTrigger(db, table)
    if (fault === undefined) return
    // It would make every write fail.
    db.exec(`DROP TRIGGER ${quote(name)}`)
    throw new Error(fault)
  } catch (error) {
    warn(
      `your ${type} ${quote(name)} of ${quote(table)} does not work any more: ${messageOf(error)}. It was left out; its text: ${sql}`,
    )
  }
}

/** SQLite keeps the text from the name on as it was written. */
const nameOfView = /^CREATE VIEW\s+(?:"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|'(?:[^']|'')*'|[^\s("]+)/iu

function freeName(db: DatabaseSync, name: string): string {
  const taken = db.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?')
  let other = `${name}_own`
  while (taken.get(other) !== undefined) other += '_'
  return other
}

function faultOfView(db: DatabaseSync, name: string): string | undefined {
  return faultOf(db, `SELECT * FROM ${quote(name)}`)
}

/** Tests any trigger of the table: a statement is compiled together with the triggers that it fires. */
function faultOfTrigger(db: DatabaseSync, table: string): string | undefined {
  const columns = db.prepare(`PRAGMA table_info(${quote(table)})`).all()
  const sets = columns.map(({ name }) => `${quote(String(name))} = ${quote(String(name))}`)
  const what = [
    `INSERT INTO ${quote(table)} DEFAULT VALUES`,
    `UPDATE ${quote(table)} SET ${sets.join()}`,
    `DELETE FROM ${quote(table)}`,
  ]
  return what.map((sql) => faultOf(db, sql)).find((fault) => fault !== undefined && !fault.startsWith('cannot modify '))
}

function faultOf(db: DatabaseSync, sql: string): string | undefined {
  try {
    db.prepare(sql)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

export function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
