/** The `views` table: what the entries of a run amount to, for whoever would otherwise fold them again. */
import type { DatabaseSync } from 'node:sqlite'
import type { KeptView } from '../part/log.ts'
import { decodeView } from './encode.ts'

export interface ViewTable {
  get(run: string): KeptView | undefined
  /** Call this inside a transaction. `text` is JSON. Keeps nothing of an unknown run. */
  keep(run: string, seq: number, text: string): void
}

export function createViewTable(db: DatabaseSync): ViewTable {
  const select = db.prepare('SELECT seq, view FROM views WHERE run = ?')
  const insert = db.prepare(
    `INSERT INTO views (run, seq, view) SELECT id, ?2, ?3 FROM runs WHERE id = ?1
     ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, view = excluded.view WHERE excluded.seq >= seq`,
  )
  return {
    get(run) {
      const row = select.get(run)
      return row && { seq: Number(row.seq), view: decodeView(String(row.view)) }
    },
    keep: (run, seq, text) => void insert.run(run, seq, text),
  }
}
