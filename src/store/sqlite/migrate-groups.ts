/** Migration to schema 7: puts the rows of all runs into groups, and `ticks` into a table without an index by run. */
import type { DatabaseSync } from 'node:sqlite'

/** Rows that are copied between two reports of progress. */
const mostRows = 10_000

export function addGroups(db: DatabaseSync, progress: (share: number) => void): void {
  db.exec(
    `CREATE TABLE tick_groups (
       run TEXT NOT NULL,
       first_seq INTEGER NOT NULL,
       last_seq INTEGER NOT NULL,
       ticks TEXT NOT NULL,
       PRIMARY KEY (run, first_seq)
     ) WITHOUT ROWID;
     INSERT INTO tick_groups
       SELECT run, min(first_seq), max(last_seq), json_group_array(id ORDER BY first_seq)
       FROM (SELECT id, run, first_seq, last_seq, (row_number() OVER (PARTITION BY run ORDER BY first_seq) - 1) / 64 AS nth FROM ticks)
       GROUP BY run, nth;
     CREATE TABLE chained_ticks (
       id INTEGER PRIMARY KEY,
       run TEXT NOT NULL,
       prev INTEGER,
       first_seq INTEGER NOT NULL,
       last_seq INTEGER NOT NULL,
       entries TEXT NOT NULL
     );
`,
  )
  const last = Number(db.prepare('SELECT max(id) AS id FROM ticks').get()?.['id'] ?? 0)
  const copy = db.prepare(
    `INSERT INTO chained_ticks SELECT id, run, NULL, first_seq, last_seq, entries FROM ticks
     WHERE id > ? AND id <= ? ORDER BY id`,
  )
  for (let id = 0; id < last; id += mostRows) {
    copy.run(id, id + mostRows)
    progress(Math.min(0.9, id / last))
  }
  db.exec(
    `DROP TABLE ticks;
     ALTER TABLE chained_ticks RENAME TO ticks;
     ALTER TABLE runs ADD COLUMN last_tick INTEGER;`,
  )
}
