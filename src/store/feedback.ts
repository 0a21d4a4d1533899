/** Feedback in memory. */
import { toFeedback, type Feedback, type FeedbackRow } from '../part/feedback.ts'

/** `has`: whether there is such a run. */
export function createFeedback(has: (run: string) => boolean): Feedback & { forget(run: string): void } {
  /** By run, then by person. */
  const runs = new Map<string, Map<string, FeedbackRow>>()
  let n = 0
  const personOf = ({ user, tenant }: Pick<FeedbackRow, 'user' | 'tenant'>) => JSON.stringify([user, tenant])

  return {
    async put(given) {
      if (!has(given.run)) return false
      const rows = runs.get(given.run) ?? new Map<string, FeedbackRow>()
      runs.set(given.run, rows)
      // Behind the others.
      rows.delete(personOf(given))
      rows.set(personOf(given), { n: ++n, ...toFeedback(given) })
      return true
    },
    async remove(given) {
      return runs.get(given.run)?.delete(personOf(given)) === true
    },
    async of(run) {
      return [...(runs.get(run)?.values() ?? [])]
    },
    async list({ verdict, before = Infinity, limit = 100 } = {}) {
      const all = [...runs.values()].flatMap((rows) => [...rows.values()])
      const found = all.filter((row) => row.n < before && (verdict === undefined || row.verdict === verdict))
      return found.sort((a, b) => b.n - a.n).slice(0, limit)
    },
    forget: (run) => void runs.delete(run),
  }
}
