/** Titles of threads in memory. */
import { toThreadTitle, type ThreadTitle, type ThreadTitles } from '../part/thread-title.ts'

/** `has`: whether there is such a thread. */
export function createThreadTitles(has: (thread: string) => boolean): ThreadTitles & { forget(thread: string): void } {
  const rows = new Map<string, ThreadTitle>()
  return {
    async put(given) {
      const row = toThreadTitle(given)
      if (!has(row.thread)) return false
      if (row.title === '') rows.delete(row.thread)
      else rows.set(row.thread, row)
      return true
    },
    async of(threads) {
      return new Map(threads.flatMap((thread) => (rows.has(thread) ? [[thread, rows.get(thread)!] as const] : [])))
    },
    forget: (thread) => void rows.delete(thread),
  }
}
