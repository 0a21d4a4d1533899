/**
 * Finds the rows of a run in `ticks`. That table has no index by run: with one, every row would change a page of its own run, which costs three
 * times as much as the row. Instead a row of `tick_groups` has the ids of up to 64 rows of a run. It is written when it is full, and when the run
 * is suspended or ends. The rows since then are the run's tail, a linked list: `runs.last_tick` is the last one, and `prev` of each is the one
 * before.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { TextTable } from './texts.ts'

/** Maximum number of rows in a group. */
export const mostInGroup = 64

export interface TickRow {
  id: number
  firstSeq: number
  lastSeq: number
  entries: string
}

export interface BatchIndex {
  /** The rows of a run, starting with the one that has this entry or, if there is none, the next one. Leave the loop before a write. */
  from(run: string, seq: number): Generator<TickRow>
  /** The ids of a run's tail, given its last row. */
  tail(last: number | undefined): number[]
  /** The `first_seq` of a row. */
  firstSeqOf(id: number): number
  /** Call these inside a transaction. `run` is the run's number. */
  add(run: number, group: Group): void
  /** Replaces rows of a run without a tail by one, which is written under the last id. Returns false if the rows have changed. */
  replace(run: string, rows: readonly TickRow[], entries: string): boolean
  /** Removes some rows of a run without a tail. Returns whether there were any. */
  removeSome(run: number, most: number): boolean
}

export interface Group {
  firstSeq: number
  lastSeq: number
  ids: number[]
}

export function createBatchIndex(db: DatabaseSync): BatchIndex {
  const arrays = { returnArrays: true }
  const idsFrom = db.prepare(
    `SELECT ticks FROM tick_groups WHERE run = ?1 AND first_seq >=
       coalesce((SELECT max(first_seq) FROM tick_groups WHERE run = ?1 AND first_seq <= ?2), 0) ORDER BY first_seq`,
    arrays,
  )
  const runOf = db.prepare('SELECT number, last_tick FROM runs WHERE id = ?', arrays)
  const previous = db.prepare('SELECT prev FROM ticks WHERE id = ?', arrays)
  const seqs = db.prepare('SELECT first_seq, last_seq FROM ticks WHERE id = ?', arrays)
  // The ids of a run grow with its entries.
  const rowsOf = db.prepare(
    'SELECT id, first_seq, last_seq, entries FROM ticks WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id',
    arrays,
  )
  const insertGroup = db.prepare('INSERT INTO tick_groups (run, first_seq, last_seq, ticks) VALUES (?, ?, ?, ?)')
  const groupsAt = db.prepare(
    `SELECT first_seq, last_seq, ticks FROM tick_groups
     WHERE run = ?1 AND first_seq <= ?3 AND first_seq >=
       coalesce((SELECT max(first_seq) FROM tick_groups WHERE run = ?1 AND first_seq <= ?2), 0) ORDER BY first_seq`,
    arrays,
  )
  const firstGroup = db.prepare(
    'SELECT first_seq, last_seq, ticks FROM tick_groups WHERE run = ? ORDER BY first_seq LIMIT 1',
    arrays,
  )
  const removeGroup = db.prepare('DELETE FROM tick_groups WHERE run = ? AND first_seq = ?')
  const removeRow = db.prepare('DELETE FROM ticks WHERE id = ?')
  const lastId = db.prepare('SELECT max(id) FROM ticks', arrays)
  const emptyRow = db.prepare(
    `UPDATE ticks SET run = '', prev = NULL, first_seq = 0, last_seq = 0, entries = '' WHERE id = ?`,
  )
  const removeEmpty = db.prepare(
    `DELETE FROM ticks WHERE entries = '' AND id = (SELECT max(id) FROM ticks WHERE id < ?)`,
  )
  const putRow = db.prepare('REPLACE INTO ticks (id, run, first_seq, last_seq, entries) VALUES (?, ?, ?, ?, ?)')

  /** The index of the first row that has this entry or a later one. */
  function indexOf(ids: readonly number[], seq: number): number {
    let low = 0
    let high = ids.length
    while (low < high) {
      const middle = (low + high) >> 1
      const [, lastSeq = Infinity] = valuesOf(seqs.get(ids[middle]!)) as number[]
      if (lastSeq < seq) low = middle + 1
      else high = middle
    }
    return low
  }

  function* read(ids: readonly number[], seq: number): Generator<TickRow> {
    // Another process may have replaced rows of the tail since its ids were read: they are skipped.
    for (const found of rowsOf.iterate(JSON.stringify(ids.slice(indexOf(ids, seq))))) {
      const [id, firstSeq, lastSeq, entries] = valuesOf(found) as [number, number, number, string]
      yield { id, firstSeq, lastSeq, entries }
    }
  }

  function tail(last: number | undefined): number[] {
    const ids: number[] = []
    for (let id = last; id !== undefined; id = previousOf(id)) ids.push(id)
    return ids.reverse()
  }

  function previousOf(id: number): number | undefined {
    const [prev] = valuesOf(previous.get(id)) as (number | null | undefined)[]
    // The ids of a run increase: anything else is a damaged file, and perhaps a cycle.
    return prev != null && prev < id ? prev : undefined
  }

  function firstSeqOf(id: number): number {
    return (valuesOf(seqs.get(id)) as [number])[0]
  }

  /** The groups with entries in this range. */
  function between(run: number, firstSeq: number, lastSeq: number): Group[] {
    return groupsAt.all(run, firstSeq, lastSeq).map(toGroup)
  }

  function add(run: number, { firstSeq, lastSeq, ids }: Group): void {
    if (ids.length > 0) insertGroup.run(run, firstSeq, lastSeq, JSON.stringify(ids))
  }

  /**
   * The last row of the table keeps its id, empty. Otherwise new rows would get its id, and readers that have passed it would miss them. An empty
   * row before a removed one is no longer needed.
   */
  function remove(ids: readonly number[]): void {
    const [last] = valuesOf(lastId.get())
    for (const id of ids) {
      if (id === last) emptyRow.run(id)
      else removeRow.run(id)
      removeEmpty.run(id)
    }
  }

  return {
    *from(run, seq) {
      const [number, last] = valuesOf(runOf.get(run)) as [number?, (number | null)?]
      if (number === undefined) return
      // Before the groups, which another process may extend meanwhile: a row that occurs twice is skipped.
      const since = tail(last ?? undefined)
      let next = seq
      for (const found of idsFrom.iterate(number, seq)) {
        const [ids] = valuesOf(found) as [string]
        for (const each of read(JSON.parse(ids) as number[], next)) {
          next = each.lastSeq + 1
          yield each
        }
      }
      yield* read(since, next)
    },
    tail,
    firstSeqOf,
    add,
    replace(run, rows, entries) {
      const [number] = valuesOf(runOf.get(run)) as [number?]
      if (number === undefined) return false
      const [from, to] = [rows[0]!, rows.at(-1)!]
      const groups = between(number, from.firstSeq, to.lastSeq)
      const ids = groups.flatMap((group) => group.ids)
      const at = ids.indexOf(from.id)
      if (at < 0 || rows.some(({ id }, i) => ids[at + i] !== id)) return false
      remove(rows.map(({ id }) => id))
      putRow.run(to.id, run, from.firstSeq, to.lastSeq, entries)
      for (const { firstSeq } of groups) removeGroup.run(number, firstSeq)
      add(number, { firstSeq: groups[0]!.firstSeq, lastSeq: from.firstSeq - 1, ids: ids.slice(0, at) })
      // Its own group: it is large.
      add(number, { firstSeq: from.firstSeq, lastSeq: to.lastSeq, ids: [to.id] })
      const rest = ids.slice(at + rows.length)
      add(number, { firstSeq: to.lastSeq + 1, lastSeq: groups.at(-1)!.lastSeq, ids: rest })
      return true
    },
    removeSome(run, most) {
      const found = firstGroup.get(run)
      if (found === undefined) return false
      const group = toGroup(found)
      const left = group.ids.slice(most)
      remove(group.ids.slice(0, most))
      removeGroup.run(run, group.firstSeq)
      if (left.length > 0) add(run, { firstSeq: firstSeqOf(left[0]!), lastSeq: group.lastSeq, ids: left })
      return true
    },
  }
}

function toGroup(found: unknown): Group {
  const [firstSeq, lastSeq, ids] = valuesOf(found) as [number, number, string]
  return { firstSeq, lastSeq, ids: JSON.parse(ids) as number[] }
}

/** A row as an array; an empty one if there is none. */
function valuesOf(found: unknown): unknown[] {
  return (found ?? []) as unknown[]
}

/** Adds rows to `ticks`, and reports when they become a group (`sqlite/batch-index.ts`). Call it inside a transaction. */
interface AppendedRowResult {
  /** The id of the row. */
  id: number
  /** The last row of the run's tail after the addition; undefined if it has none. */
  last: number | undefined
  /** A group to add to the run, once it has a number. */
  group: Group | undefined
}

export interface BatchChains {
  /** Adds a row to a run whose tail ends with `last`. `rests`: the run is suspended or has ended, so its tail becomes a group. */
  add(run: string, last: number | undefined, row: Omit<TickRow, 'id'>, rests: boolean): AppendedRowResult
  /** Call this when another process continues the run. */
  forget(run: string): void
}

export function createBatchChains(db: DatabaseSync, groups: BatchIndex): BatchChains {
  const insert = db.prepare('INSERT INTO ticks (run, prev, first_seq, last_seq, entries) VALUES (?, ?, ?, ?, ?)')
  /** The tails of runs that this process writes, and the start of each. Valid only while a run's `last_tick` is the last id. */
  const known = new Map<string, { from: number; ids: number[] }>()

  function tailOf(run: string, last: number): { from: number; ids: number[] } {
    let tail = known.get(run)
    if (tail?.ids.at(-1) === last) return tail
    const ids = groups.tail(last)
    tail = { from: groups.firstSeqOf(ids[0]!), ids }
    known.set(run, tail)
    return tail
  }

  return {
    add(run, last, { firstSeq, lastSeq, entries }, rests) {
      const id = Number(insert.run(run, last ?? null, firstSeq, lastSeq, entries).lastInsertRowid)
      const tail = last === undefined ? undefined : tailOf(run, last)
      if (rests || (tail !== undefined && tail.ids.length >= mostInGroup - 1)) {
        known.delete(run)
        const ids = tail === undefined ? [id] : [...tail.ids, id]
        return { id, last: undefined, group: { firstSeq: tail?.from ?? firstSeq, lastSeq, ids } }
      }
      if (tail === undefined) known.set(run, { from: firstSeq, ids: [id] })
      else tail.ids.push(id)
      return { id, last: id, group: undefined }
    },
    forget: (run) => void known.delete(run),
  }
}

/* The `dropped` table: runs whose deletion has begun; and the ids of recently deleted runs. */

/** Maximum number of remembered ids: a late reader of a deleted run must not wait for it to start. */
const mostRecent = 1000

export interface Dropped {
  /** Whether the run was deleted recently. */
  has(run: string): boolean
  /** The numbers of runs that still have rows. */
  unfinished(): number[]
  /** Call these inside a transaction. Returns the run's number. */
  begin(run: string): number
  /** Removes some of its rows. Returns false if there are none: from then on a new run may get the number. */
  removeSome(number: number, most: number): boolean
  /** Whether no run is being deleted. `refresh` drops the cached answer: another process may begin a deletion. */
  isEmpty(): boolean
  refresh(): void
  /** A run starts with the id of a deleted one, of which nothing may remain. */
  revive(run: string): void
}

export function createDropped(
  db: DatabaseSync,
  groups: Pick<BatchIndex, 'removeSome'>,
  texts: Pick<TextTable, 'release'>,
): Dropped {
  const insert = db.prepare('INSERT INTO dropped (run, id) SELECT number, id FROM runs WHERE id = ?')
  const remove = db.prepare('DELETE FROM dropped WHERE run = ?')
  const find = db.prepare('SELECT 1 FROM dropped WHERE run = ?')
  const numberOf = db.prepare('SELECT run FROM dropped WHERE id = ?')
  const all = db.prepare('SELECT run FROM dropped')
  const any = db.prepare('SELECT 1 FROM dropped LIMIT 1')
  const recent = new Set<string>()
  let isKnownEmpty = false

  function isEmpty(): boolean {
    return (isKnownEmpty ||= any.get() === undefined)
  }

  function removeSome(number: number, most: number): boolean {
    // Another process may have completed the deletion since.
    if (find.get(number) === undefined) return false
    if (groups.removeSome(number, most) || texts.release(number, most)) return true
    remove.run(number)
    return false
  }

  return {
    has: (run) => recent.has(run),
    unfinished: () => all.all().map(({ run }) => Number(run)),
    isEmpty,
    refresh() {
      isKnownEmpty = false
    },
    begin(run) {
      isKnownEmpty = false
      const number = Number(insert.run(run).lastInsertRowid)
      recent.add(run)
      if (recent.size > mostRecent) recent.delete(recent.values().next().value!)
      return number
    },
    removeSome,
    revive(run) {
      recent.delete(run)
      const row = isEmpty() ? undefined : numberOf.get(run)
      if (row) while (removeSome(Number(row.run), Infinity));
    },
  }
}
