/**
 * Adds the rows of new runs without looking each up before. Nearly always a run that begins is new. If its row is in the table, adding it
 * fails, and the transaction is repeated with the row that it found.
 */
import type { Entry } from '../part/entry.ts'
import type { RunTable } from './sqlite-runs.ts'

/** SQLITE_CONSTRAINT_UNIQUE */
const taken = 2067

export interface NewRuns {
  /** Whether these entries begin a run of which no row is known to exist. */
  seemsNew(run: string, entries: readonly Entry[]): boolean
  insert: RunTable['insert']
  committed(): void
  /** Returns whether the transaction failed because a run was not new. */
  rolledBack(): boolean
}

export function createNewRuns(runs: Pick<RunTable, 'insert'>): NewRuns {
  /** Runs that were not new. */
  const found = new Set<string>()
  let hasFound = false
  return {
    seemsNew(run, [first]) {
      return first?.type === 'run-start' && first.seq === 1 && !found.has(run)
    },
    insert(row, isFree) {
      try {
        runs.insert(row, isFree)
      } catch (error) {
        hasFound = (error as { errcode?: unknown }).errcode === taken
        if (hasFound) found.add(row.id)
        throw error
      }
    },
    committed: () => found.clear(),
    rolledBack() {
      const mayRepeat = hasFound
      hasFound = false
      return mayRepeat
    },
  }
}
