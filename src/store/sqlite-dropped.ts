/** The `dropped` table: runs whose deletion has begun; and the ids of runs that were deleted lately. */
import type { DatabaseSync } from 'node:sqlite'
import type { TickGroups } from './sqlite-groups.ts'

/** Maximum number of ids to remember: whoever reads a deleted run late must not wait for it to begin. */
const mostRecent = 1000

export interface Dropped {
  /** Whether the run was deleted lately. */
  has(run: string): boolean
  /** Runs that still have rows. */
  unfinished(): string[]
  /** Call these inside a transaction. */
  begin(run: string): void
  /** Its last rows are gone. */
  over(run: string): void
  /** A run begins with the id of a deleted one. */
  revive(run: string): void
}

export function createDropped(db: DatabaseSync, groups: TickGroups): Dropped {
  const insert = db.prepare('INSERT OR IGNORE INTO dropped (run) VALUES (?)')
  const remove = db.prepare('DELETE FROM dropped WHERE run = ?')
  const unfinished = new Set(
    db
      .prepare('SELECT run FROM dropped')
      .all()
      .map(({ run }) => String(run)),
  )
  const recent = new Set<string>()

  return {
    has: (run) => recent.has(run),
    unfinished: () => [...unfinished],
    begin(run) {
      insert.run(run)
      unfinished.add(run)
      recent.add(run)
      if (recent.size > mostRecent) recent.delete(recent.values().next().value!)
    },
    over(run) {
      remove.run(run)
      unfinished.delete(run)
    },
    revive(run) {
      recent.delete(run)
      if (!unfinished.delete(run)) return
      while (groups.removeSome(run, Infinity));
      remove.run(run)
    },
  }
}
