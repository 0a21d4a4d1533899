/** Feedback in Redis. */
import { toFeedback, verdicts, type Feedback, type FeedbackRow, type NewFeedback } from '../../part/feedback.ts'
import { parseJson } from '../../part/json.ts'
import type { RedisConnection } from './connection.ts'
import { partitionOf } from './keys.ts'
import { createOperate, everyPartition } from './orphans.ts'

/** Rows that are read at once to find some of them. */
const pageLength = 500

export function createRedisFeedback(connection: RedisConnection): Feedback {
  const operate = createOperate(connection)
  const personOf = ({ user, tenant }: Pick<NewFeedback, 'user' | 'tenant'>) => JSON.stringify([user, tenant])

  /** The newest rows of a partition that match. */
  async function ofPartition(
    partition: number,
    { verdict, before, limit = 100 }: Parameters<Feedback['list']>[0] = {},
  ) {
    const found: FeedbackRow[] = []
    let last = before ?? Number.MAX_SAFE_INTEGER
    for (;;) {
      const page = (await operate(partition, 'judged', last, pageLength)) as string[]
      const rows = toRows(page)
      for (const row of rows) {
        if (verdict === undefined || row.verdict === verdict) found.push(row)
        if (found.length === limit) return found
      }
      if (page.length < 2 * pageLength) return found
      last = Number(page.at(-2))
    }
  }

  return {
    async put(given) {
      const row = toFeedback(given)
      return (await operate(partitionOf(row.run), 'judge', row.run, personOf(row), JSON.stringify(row))) === 1
    },
    remove: async (row) => (await operate(partitionOf(row.run), 'unjudge', row.run, personOf(row))) === 1,
    async of(run) {
      const rows = toRows((await operate(partitionOf(run), 'judgements', run)) as string[])
      return rows.sort((a, b) => a.n - b.n)
    },
    async list(query = {}) {
      const found = await Promise.all(everyPartition.map((partition) => ofPartition(partition, query)))
      return found
        .flat()
        .sort((a, b) => b.n - a.n)
        .slice(0, query.limit ?? 100)
    },
  }
}

/** Without those that are no rows: whoever can write to Redis may have changed them. */
function toRows(found: readonly string[]): FeedbackRow[] {
  const rows: FeedbackRow[] = []
  for (let i = 0; i < found.length; i += 2) {
    const row = readRow(found[i + 1]!)
    if (row !== undefined) rows.push({ n: Number(found[i]), ...row })
  }
  return rows
}

function readRow(text: string): NewFeedback | undefined {
  let value: unknown
  try {
    value = parseJson(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { run, user, tenant, verdict, note, time } = value as Record<string, unknown>
  if (typeof run !== 'string' || typeof user !== 'string' || typeof tenant !== 'string') return undefined
  if (typeof time !== 'number') return undefined
  const said = verdicts.find((each) => each === verdict)
  return toFeedback({
    run,
    user,
    tenant,
    time,
    ...(said && { verdict: said }),
    ...(typeof note === 'string' && { note }),
  })
}
