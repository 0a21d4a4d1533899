/** Migration to schema 7: puts the rows of all runs into groups, and `ticks` into a table without an index by run. */
import type { DatabaseSync } from 'node:sqlite'

export function addGroups(db: DatabaseSync): void {
  // They read `ticks`; `tables/layout.ts` creates them again.
  const views = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'view'").all()
  for (const { name } of views) db.exec(`DROP VIEW ${String(name)}`)
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
     INSERT INTO chained_ticks SELECT id, run, NULL, first_seq, last_seq, entries FROM ticks ORDER BY id;
     DROP TABLE ticks;
     ALTER TABLE chained_ticks RENAME TO ticks;
     ALTER TABLE runs ADD COLUMN last_tick INTEGER;`,
  )
}
