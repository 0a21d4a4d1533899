/** The `views` table: stored folds of runs, so that readers need not fold the entries again. */
import type { DatabaseSync } from 'node:sqlite'
import type { KeptView } from '../../part/log.ts'
import { decodeView } from '../encode.ts'

export interface ViewTable {
  get(run: string): KeptView | undefined
  /** Call these inside a transaction. `text` is JSON. Views of unknown runs are not stored. */
  keep(run: string, seq: number, text: string): void
  /** `number`: of an existing run. */
  keepOf(number: number, seq: number, text: string): void
}

export function createViewTable(db: DatabaseSync): ViewTable {
  const select = db.prepare('SELECT v.seq, v.view FROM runs r JOIN views v ON v.run = r.number WHERE r.id = ?')
  const numberOf = db.prepare('SELECT number FROM runs WHERE id = ?')
  const insert = db.prepare(
    `INSERT INTO views (run, seq, view) VALUES (?, ?, ?)
     ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, view = excluded.view WHERE excluded.seq >= seq`,
  )
  const keepOf = (number: number, seq: number, text: string) => void insert.run(number, seq, text)
  return {
    get(run) {
      const row = select.get(run)
      return row && { seq: Number(row.seq), view: decodeView(String(row.view)) }
    },
    keep(run, seq, text) {
      const row = numberOf.get(run)
      if (row) keepOf(Number(row.number), seq, text)
    },
    keepOf,
  }
}
