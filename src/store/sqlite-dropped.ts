/** The `dropped` table: runs whose deletion has begun; and the ids of runs that were deleted lately. */
import type { DatabaseSync } from 'node:sqlite'

/** Maximum number of ids to remember: whoever reads a deleted run late must not wait for it to begin. */
const mostRecent = 1000

export interface Dropped {
  /** Whether the run was deleted lately. */
  has(run: string): boolean
  /** The numbers of runs that still have rows. */
  unfinished(): number[]
  /** Call these inside a transaction. Returns the run's number. */
  begin(run: string): number
  /** Its last rows are gone. */
  over(number: number): void
  /** A run begins with the id of a deleted one. */
  revive(run: string): void
}

export function createDropped(db: DatabaseSync): Dropped {
  const insert = db.prepare('INSERT INTO dropped (run) SELECT number FROM runs WHERE id = ?')
  const remove = db.prepare('DELETE FROM dropped WHERE run = ?')
  const all = db.prepare('SELECT run FROM dropped')
  const recent = new Set<string>()

  return {
    has: (run) => recent.has(run),
    unfinished: () => all.all().map(({ run }) => Number(run)),
    begin(run) {
      const number = Number(insert.run(run).lastInsertRowid)
      recent.add(run)
      if (recent.size > mostRecent) recent.delete(recent.values().next().value!)
      return number
    },
    over: (number) => void remove.run(number),
    revive: (run) => void recent.delete(run),
  }
}
