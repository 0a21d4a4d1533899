/** Readers of the changes of all runs. Those that keep up are served from memory, the others from the table. */
import type { Entry } from '../../part/entry.ts'
import type { Change } from '../../part/log.ts'
import type { Puller } from '../follow.ts'
import type { SqlitePages } from './pages.ts'

/** Maximum size of the cached changes, in characters of JSON. */
const most = 128 * 1024

type Stored = Omit<Change, 'entries'> & { entries: readonly Entry[] }

export interface SqliteChanges {
  /** Whether there is a reader. Without one, `add` is not needed. */
  readonly isRead: boolean
  /** Adds a commit of this connection, with its size in characters of JSON. */
  add(changes: readonly Stored[], length: number): void
  /** Call this when another connection has committed: the cache is incomplete. */
  clear(): void
  reader(after: number): Puller<Change[]>
}

export function createChangeFeed(pages: SqlitePages): SqliteChanges {
  const readers = new Set<object>()
  let commits: { changes: readonly Stored[]; length: number }[] = []
  let total = 0

  function clear(): void {
    commits = []
    total = 0
  }

  /** All changes after this one, if they are cached. */
  function near(after: number): Change[] | undefined {
    const first = commits[0]?.changes[0]
    if (first === undefined || first.n > after + 1) return undefined
    const later = commits.flatMap(({ changes }) => changes.filter(({ n }) => n > after))
    // Every reader gets its own arrays.
    return later.map(({ n, run, entries }) => ({ n, run, entries: [...entries] }))
  }

  return {
    get isRead() {
      return readers.size > 0
    },
    add(changes, length) {
      commits.push({ changes, length })
      total += length
      while (total > most) total -= commits.shift()!.length
    },
    clear,
    reader(after) {
      let position = after
      const reader = {}
      return {
        pull() {
          readers.add(reader)
          const cachedPlace = near(position)
          const value = cachedPlace ?? pages.changes(position)
          const last = value.at(-1)
          if (last === undefined) return 'wait'
          position = last.n
          return { value, stored: cachedPlace === undefined }
        },
        leave() {
          readers.delete(reader)
          if (readers.size === 0) clear()
        },
      }
    },
  }
}
