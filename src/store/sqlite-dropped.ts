/** The `dropped` table: runs whose deletion has begun; and the ids of runs that were deleted lately. */
import type { DatabaseSync } from 'node:sqlite'
import type { TickGroups } from './sqlite-groups.ts'

/** Maximum number of ids to remember: whoever reads a deleted run late must not wait for it to begin. */
const mostRecent = 1000

export interface Dropped {
  /** Whether the run was deleted lately. */
  has(run: string): boolean
  /** The numbers of runs that still have rows. */
  unfinished(): number[]
  /** Call these inside a transaction. Gives the run's rows a number that no other run gets, and returns it. */
  begin(run: string): number
  /** Its last rows are gone. */
  over(number: number): void
  /** A run begins with the id of a deleted one. */
  revive(run: string): void
}

export function createDropped(db: DatabaseSync, groups: Pick<TickGroups, 'renumber'>): Dropped {
  const insert = db.prepare('INSERT INTO dropped (run) SELECT coalesce(min(run), 0) - 1 FROM dropped')
  const remove = db.prepare('DELETE FROM dropped WHERE run = ?')
  const all = db.prepare('SELECT run FROM dropped')
  const recent = new Set<string>()

  return {
    has: (run) => recent.has(run),
    unfinished: () => all.all().map(({ run }) => Number(run)),
    begin(run) {
      const number = Number(insert.run().lastInsertRowid)
      groups.renumber(run, number)
      recent.add(run)
      if (recent.size > mostRecent) recent.delete(recent.values().next().value!)
      return number
    },
    over: (number) => void remove.run(number),
    revive: (run) => void recent.delete(run),
  }
}
