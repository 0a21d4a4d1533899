/** What people call their conversations. A conversation has no log of its own, so its name stands beside those of its runs. */
import { shownLine } from './shown-text.ts'

/** The last name that somebody gave a thread. */
export interface ThreadTitle {
  thread: string
  /** At most 120 characters, in one line. */
  title: string
  /** The id of who gave it; empty: nobody in particular. */
  user: string
  /** Its tenant; empty: none. */
  tenant: string
  /** Epoch ms. */
  time: number
}

/** Deleted with the last run of its thread. Every method rejects with `store-failed` when the store fails. */
export interface ThreadTitles {
  /** Replaces the title of a thread; an empty one takes it back. Resolves with whether there is such a thread. */
  put(row: ThreadTitle): Promise<boolean>
  /** By thread: those that have one. */
  of(threads: readonly string[]): Promise<Map<string, ThreadTitle>>
}

/** Maximum length of a title, as of the first words of a run. */
export const longestTitle = 120

/** They turn the text beside a title, too. */
const turning = /[\u202A-\u202E\u2066-\u2069]/gu

/** The row as it is stored. A title of which nothing can be seen is none. */
export function toThreadTitle({ thread, title, user, tenant, time }: ThreadTitle): ThreadTitle {
  const line = title
    .replaceAll(turning, '')
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .slice(0, longestTitle)
    .toWellFormed()
  return { thread, title: shownLine(line) === '' ? '' : line, user, tenant, time }
}
