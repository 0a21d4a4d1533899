/** Reads rows of `ticks` for the tables. */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import { createTickGroups, type TickRow } from '../sqlite-groups.ts'

export interface TickOfRun extends TickRow {
  run: string
}

export interface TickReader {
  /**
   * The rows of a run from the one on that has this entry or, if it was merged into a later one, that. Leave the loop before the
   * transaction ends.
   */
  from(run: string, seq: number): Generator<TickRow>
  /** The first row after this one, over all runs. Call `rest` before the transaction ends. */
  after(id: number): TickOfRun | undefined
  rest(): void
}

export function createTickReader(db: DatabaseSync): TickReader {
  const groups = createTickGroups(db)
  // Arrays: this reads every row of the log, and rows as objects are slow to make.
  const later = db.prepare('SELECT id, first_seq, last_seq, entries, run FROM ticks WHERE id > ? ORDER BY id', {
    returnArrays: true,
  })
  let rows: Iterator<unknown> | undefined
  let row: TickOfRun | undefined

  function rest(): void {
    rows?.return?.()
    rows = undefined
    row = undefined
  }

  return {
    from: groups.from,
    after(id) {
      if (row !== undefined && row.id > id) return row
      if (row?.id !== id) rest()
      rows ??= later.iterate(id)
      const { done, value } = rows.next()
      row = done ? undefined : fromArray(value as SQLOutputValue[])
      if (done) rows = undefined
      return row
    },
    rest,
  }
}

function fromArray([id, firstSeq, lastSeq, entries, run]: SQLOutputValue[]): TickOfRun {
  return {
    id: Number(id),
    firstSeq: Number(firstSeq),
    lastSeq: Number(lastSeq),
    entries: String(entries),
    run: String(run),
  }
}
