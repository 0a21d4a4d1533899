/** The table `feedback` of a SQLite file. */
import { toFeedback, type Feedback, type FeedbackRow } from '../../part/feedback.ts'
import type { TableContext } from './ledger.ts'

/** `verdict`: `up`, `down` or NULL. `note`: NULL if there is none. `time`: epoch ms. */
export const feedbackTable = `
  CREATE TABLE feedback (
    n INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    user TEXT NOT NULL,
    tenant TEXT NOT NULL,
    verdict TEXT,
    note TEXT,
    time INTEGER NOT NULL,
    UNIQUE (run, user, tenant)
  );`

/** Numbers come from the clock, so that one that was deleted does not come again. */
const numberAt = (time: number) => Math.floor(time) * 1000

export function createSqliteFeedback({ db, write, reading, now = Date.now }: TableContext): Feedback {
  const has = db.prepare('SELECT 1 FROM runs WHERE id = ?')
  const remove = db.prepare('DELETE FROM feedback WHERE run = ? AND user = ? AND tenant = ?')
  const insert = db.prepare(
    `INSERT INTO feedback (n, run, user, tenant, verdict, note, time)
     VALUES (max(:n, 1 + coalesce((SELECT max(n) FROM feedback), 0)), :run, :user, :tenant, :verdict, :note, :time)`,
  )
  const ofRun = db.prepare('SELECT * FROM feedback WHERE run = ? ORDER BY n')
  const list = db.prepare(
    `SELECT * FROM feedback WHERE n < :before AND (:verdict IS NULL OR verdict = :verdict) ORDER BY n DESC LIMIT :limit`,
  )
  const toRow = ({ verdict, note, ...row }: Record<string, unknown>) =>
    ({ ...row, ...(verdict !== null && { verdict }), ...(note !== null && { note }) }) as unknown as FeedbackRow

  return {
    put(given) {
      const { run, user, tenant, verdict = null, note = null, time } = toFeedback(given)
      return write('keep feedback', () => {
        if (has.get(run) === undefined) return false
        remove.run(run, user, tenant)
        insert.run({ n: numberAt(now()), run, user, tenant, verdict, note, time })
        return true
      })
    },
    remove: ({ run, user, tenant }) => write('remove feedback', () => remove.run(run, user, tenant).changes > 0),
    of: async (run) => reading('read feedback', () => ofRun.all(run).map(toRow)),
    list: async ({ verdict, before = Number.MAX_SAFE_INTEGER, limit = 100 } = {}) =>
      reading('read feedback', () => list.all({ before, verdict: verdict ?? null, limit }).map(toRow)),
  }
}
