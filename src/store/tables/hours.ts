/**
 * Keeps what closed hours come to, so that statistics of a long time read few rows. A row of `indexed_hour_facts` is an hour of an agent, owner and
 * tenant. It has no text and no run of its own.
 *
 * Whoever changes what an hour comes to marks it: its rows are thrown away, and `changes` grows, so that rows that were read before the change are not
 * kept. The filling of the tables marks the hours of late entries, and the removal of a run those of all its rows.
 */
import type { DatabaseSync } from 'node:sqlite'
import { hourLength } from './facts.ts'
import type { HourFacts } from './totals.ts'

/** An hour is kept so long after its end, in ms: most of its runs have ended. */
const patience = 300_000

/** Hours that end before this time may be kept. */
export function closedAt(now: number): number {
  return Math.floor((now - patience) / hourLength) * hourLength
}

export interface HourMarks {
  /** Call it first in each transaction. */
  begin(): void
  /** Times at or after this one need no mark: their hours are kept by nobody. */
  readonly open: number
  mark(time: number): void
  /** Before COMMIT. */
  save(): void
}

export function createHourMarks(db: DatabaseSync, now: () => number = Date.now): HourMarks {
  const last = db.prepare('SELECT max(hour) AS hour FROM indexed_hours')
  const change = db.prepare(
    'INSERT INTO indexed_hours VALUES (?, 1, 0) ON CONFLICT (hour) DO UPDATE SET changes = changes + 1, kept = 0',
  )
  const remove = db.prepare('DELETE FROM indexed_hour_facts WHERE hour = ?')
  let marked = new Set<number>()
  let open = 0

  return {
    begin() {
      marked = new Set()
      // The clock may have been set back since hours were kept.
      open = Math.max(Number(last.get()?.hour ?? 0) + 1, Math.floor(now() / hourLength)) * hourLength
    },
    get open() {
      return open
    },
    mark(time) {
      if (time < open) marked.add(Math.floor(time / hourLength))
    },
    save() {
      for (const hour of marked) {
        change.run(hour)
        remove.run(hour)
      }
      marked = new Set()
    },
  }
}

/** Marks the hours of all rows of a run, and returns them. Call it inside the transaction that removes any of them. */
export function markHoursOf(db: DatabaseSync, run: number): number[] {
  const times = db
    .prepare(
      `SELECT started_at AS at FROM runs WHERE number = ?1
       UNION ALL SELECT timestamp FROM indexed_usage WHERE run = ?1
       UNION ALL SELECT started_at FROM indexed_steps WHERE run = ?1 AND kind = 'model-call'
       UNION ALL SELECT called_at FROM indexed_tool_calls WHERE run = ?1`,
    )
    .all(run)
    .map(({ at }) => Number(at))
  markHours(db, times)
  return times
}

export function markHours(db: DatabaseSync, times: readonly number[]): void {
  const marks = createHourMarks(db)
  marks.begin()
  for (const time of times) marks.mark(time)
  marks.save()
}

/** Keeps hours unless they have changed since they were read. Call it inside a transaction. */
export function keepHours(db: DatabaseSync, hours: readonly HourFacts[]): void {
  const known = db.prepare('SELECT changes FROM indexed_hours WHERE hour = ?')
  const keep = db.prepare('INSERT INTO indexed_hours VALUES (?, ?, 1) ON CONFLICT (hour) DO UPDATE SET kept = 1')
  const clear = db.prepare('DELETE FROM indexed_hour_facts WHERE hour = ?')
  const add = db.prepare(
    'INSERT INTO indexed_hour_facts (hour, tenant, owner, agent, names, numbers) VALUES (?, ?, ?, ?, ?, ?)',
  )
  for (const { hour, changes, rows } of hours) {
    if (Number(known.get(hour)?.changes ?? 0) !== changes) continue
    keep.run(hour, changes)
    clear.run(hour)
    for (const { tenant, owner, agent, names, numbers } of rows) add.run(hour, tenant, owner, agent, names, numbers)
  }
}
