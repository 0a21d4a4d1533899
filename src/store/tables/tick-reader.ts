/** Reads rows of `ticks` for the tables. */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import type { Tick } from './fill-run.ts'

export interface TickOfRun extends Omit<Tick, 'log'> {
  run: string
}

export interface TickReader {
  /**
   * The rows of a run from the one on that has this entry or, if it was merged into a later one, that. Leave the loop before the
   * transaction ends.
   */
  from(run: string, seq: number): Generator<Omit<Tick, 'log'>>
  /** The first row after this one, over all runs. Call `rest` before the transaction ends. */
  after(id: number): TickOfRun | undefined
  rest(): void
}

export function createTickReader(db: DatabaseSync): TickReader {
  const ofRun = db.prepare(
    `SELECT id, first_seq, last_seq, entries FROM ticks WHERE run = ?1 AND first_seq >=
       coalesce((SELECT max(first_seq) FROM ticks WHERE run = ?1 AND first_seq <= ?2), 0) ORDER BY first_seq`,
  )
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
    *from(run, seq) {
      for (const found of ofRun.iterate(run, seq)) {
        if (Number(found.last_seq) >= seq) yield toTick(found)
      }
    },
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

function toTick(row: Record<string, SQLOutputValue>): Omit<Tick, 'log'> {
  return {
    id: Number(row.id),
    firstSeq: Number(row.first_seq),
    lastSeq: Number(row.last_seq),
    entries: String(row.entries),
  }
}
