/**
 * Migration to schema 8: `views`, `tick_groups` and `dropped` have the number of a run instead of its id. Rows of new runs then stand
 * at the end of their table, beside those of others that begin at the same time, not on a page of their own.
 */
import type { DatabaseSync } from 'node:sqlite'

/** Runs that are being deleted have lost their numbers. */
const dropped = `SELECT run, row_number() OVER (ORDER BY run) + (SELECT coalesce(max(number), 0) FROM runs) AS number FROM dropped`

export function numberRuns(db: DatabaseSync): void {
  db.exec(
    `CREATE TABLE numbered_views (
       run INTEGER PRIMARY KEY,
       seq INTEGER NOT NULL,
       view TEXT NOT NULL
     );
     INSERT INTO numbered_views SELECT r.number, v.seq, v.view FROM views v JOIN runs r ON r.id = v.run ORDER BY r.number;
     DROP TABLE views;
     ALTER TABLE numbered_views RENAME TO views;
     CREATE TABLE numbered_groups (
       run INTEGER NOT NULL,
       first_seq INTEGER NOT NULL,
       last_seq INTEGER NOT NULL,
       ticks TEXT NOT NULL,
       PRIMARY KEY (run, first_seq)
     ) WITHOUT ROWID;
     INSERT INTO numbered_groups
       SELECT coalesce(r.number, d.number) AS number, g.first_seq, g.last_seq, g.ticks
       FROM tick_groups g LEFT JOIN runs r ON r.id = g.run
         LEFT JOIN (${dropped}) d ON d.run = g.run
       WHERE coalesce(r.number, d.number) IS NOT NULL ORDER BY 1, 2;
     DROP TABLE tick_groups;
     ALTER TABLE numbered_groups RENAME TO tick_groups;
     CREATE TABLE numbered_dropped (run INTEGER PRIMARY KEY, id TEXT NOT NULL);
     INSERT INTO numbered_dropped SELECT number, run FROM (${dropped});
     DROP TABLE dropped;
     ALTER TABLE numbered_dropped RENAME TO dropped;`,
  )
}
