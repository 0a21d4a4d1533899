/** Reads rows of `ticks` for the tables. */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import type { Tick } from './fill-run.ts'

export interface TickReader {
  /**
   * The rows of a run from the one on that has this entry or, if it was merged into a later one, that. Leave the loop before the
   * transaction ends.
   */
  from(run: string, seq: number): Generator<Omit<Tick, 'log'>>
  /** The first row after this one, over all runs. */
  after(id: number): (Omit<Tick, 'log'> & { run: string }) | undefined
}

export function createTickReader(db: DatabaseSync): TickReader {
  const ofRun = db.prepare(
    `SELECT id, first_seq, last_seq, entries FROM ticks WHERE run = ?1 AND first_seq >=
       coalesce((SELECT max(first_seq) FROM ticks WHERE run = ?1 AND first_seq <= ?2), 0) ORDER BY first_seq`,
  )
  const next = db.prepare('SELECT id, run, first_seq, last_seq, entries FROM ticks WHERE id > ? ORDER BY id LIMIT 1')
  return {
    *from(run, seq) {
      for (const row of ofRun.iterate(run, seq)) {
        if (Number(row.last_seq) >= seq) yield toTick(row)
      }
    },
    after(id) {
      const row = next.get(id)
      return row && { ...toTick(row), run: String(row.run) }
    },
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
