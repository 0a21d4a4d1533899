/** Tells the open pages of this process that somebody has named a conversation. */
import type { OwnerFilter } from '../../part/principal.ts'

export interface Rename {
  /** The id in the log. */
  thread: string
  /** Whose it is, for who may hear of it. */
  owner: OwnerFilter
  /** As it is called now. Absent: it has no words either. */
  title?: string | undefined
}

export interface Renames {
  tell(rename: Rename): void
  /** Returns a function that ends it. */
  listen(listener: (rename: Rename) => void): () => void
}

export function createRenames(): Renames {
  const listeners = new Set<(rename: Rename) => void>()
  return {
    tell(rename) {
      for (const listener of listeners) listener(rename)
    },
    listen(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
