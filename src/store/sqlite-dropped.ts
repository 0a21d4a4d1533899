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
  /** Call these inside a transaction. Returns the run's number. */
  begin(run: string): number
  /** Removes some of its rows. Returns false if there are none: from then on the number may be that of a new run. */
  removeSome(number: number, most: number): boolean
  /** Whether no run is being deleted. What is known is forgotten by `refresh`: another process may begin to delete one. */
  isEmpty(): boolean
  refresh(): void
  /** A run begins with the id of a deleted one, of which nothing may be left. */
  revive(run: string): void
}

export function createDropped(db: DatabaseSync, groups: Pick<TickGroups, 'removeSome'>): Dropped {
  const insert = db.prepare('INSERT INTO dropped (run, id) SELECT number, id FROM runs WHERE id = ?')
  const remove = db.prepare('DELETE FROM dropped WHERE run = ?')
  const find = db.prepare('SELECT 1 FROM dropped WHERE run = ?')
  const numberOf = db.prepare('SELECT run FROM dropped WHERE id = ?')
  const all = db.prepare('SELECT run FROM dropped')
  const any = db.prepare('SELECT 1 FROM dropped LIMIT 1')
  const recent = new Set<string>()
  let isKnownEmpty = false

  function isEmpty(): boolean {
    return (isKnownEmpty ||= any.get() === undefined)
  }

  function removeSome(number: number, most: number): boolean {
    // Whoever else deletes it may have completed it since the last time.
    if (find.get(number) === undefined) return false
    if (groups.removeSome(number, most)) return true
    remove.run(number)
    return false
  }

  return {
    has: (run) => recent.has(run),
    unfinished: () => all.all().map(({ run }) => Number(run)),
    isEmpty,
    refresh() {
      isKnownEmpty = false
    },
    begin(run) {
      isKnownEmpty = false
      const number = Number(insert.run(run).lastInsertRowid)
      recent.add(run)
      if (recent.size > mostRecent) recent.delete(recent.values().next().value!)
      return number
    },
    removeSome,
    revive(run) {
      recent.delete(run)
      const row = isEmpty() ? undefined : numberOf.get(run)
      if (row) while (removeSome(Number(row.run), Infinity));
    },
  }
}
