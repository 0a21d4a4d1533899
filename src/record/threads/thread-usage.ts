/** What a conversation has used, by model. */
import { keptOf } from '../../fold/read-view.ts'
import { sumUsed, type UsedByModel } from '../../fold/usage-fold.ts'
import { queryRows } from '../own-query.ts'
import { toUsed, usageSums, type UsageSum } from '../usage-sums.ts'
import type { ThreadSource } from './list-threads.ts'

const query = `SELECT t.model AS name, ${usageSums} FROM usage t
  WHERE t.run IN (SELECT id FROM runs WHERE thread_id = :id) GROUP BY 1 ORDER BY reports DESC`

export async function threadUsage(store: ThreadSource, id: string): Promise<UsedByModel[]> {
  const { records } = store
  if (records !== undefined) {
    const rows = await queryRows<UsageSum & { name: string }>(records, 'read usage', query, { parameters: { id } })
    return rows.map(({ name, ...sum }) => ({ model: name, ...toUsed(sum) }))
  }
  const runs = await store.runs.list({ threadId: id, limit: 1000 })
  const used = (await Promise.all(runs.map((row) => keptOf(store, row)))).flatMap((kept) => kept?.usageByModel ?? [])
  return [...new Set(used.map(({ model }) => model))].map((model) => ({
    model,
    ...sumUsed(used.filter((each) => each.model === model)),
  }))
}
