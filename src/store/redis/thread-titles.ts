/** Titles of threads in Redis: `T:title:<thread>`, a row as JSON. */
import type { RunIndex } from '../../part/log.ts'
import { parseJson } from '../../part/json.ts'
import { toThreadTitle, type ThreadTitle, type ThreadTitles } from '../../part/thread-title.ts'
import type { RedisConnection } from './connection.ts'
import { damagedIs } from './damage-script.ts'

export function createRedisThreadTitles({ ask, keys }: RedisConnection, runs: Pick<RunIndex, 'list'>): ThreadTitles {
  const hasRuns = async (threadId: string) => (await runs.list({ threadId, limit: 1 })).length > 0
  const remove = (thread: string) => ask('name a thread', keys.title(thread), ['UNLINK', keys.title(thread)])
  return {
    async put(given) {
      const row = toThreadTitle(given)
      if (!(await hasRuns(row.thread))) return false
      const key = keys.title(row.thread)
      if (row.title === '') await remove(row.thread)
      else await ask('name a thread', key, ['SET', key, JSON.stringify(row)])
      // Deleted meanwhile.
      if (await hasRuns(row.thread)) return true
      await remove(row.thread)
      return false
    },
    async of(threads) {
      const found = await Promise.all(
        threads.map(async (thread) => {
          const key = keys.title(thread)
          const text = await ask('read the title of a thread', key, ['GET', key]).catch(damagedIs(null))
          const row = readRow(text)
          return row?.thread === thread ? [[thread, row] as const] : []
        }),
      )
      return new Map(found.flat())
    },
  }
}

/** Undefined for what is no row: whoever can write to Redis may have changed it. */
function readRow(text: unknown): ThreadTitle | undefined {
  let value: unknown
  try {
    value = typeof text === 'string' ? parseJson(text) : undefined
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { thread, title, user, tenant, time } = value as Record<string, unknown>
  if (typeof thread !== 'string' || typeof title !== 'string' || title === '') return undefined
  if (typeof user !== 'string' || typeof tenant !== 'string' || typeof time !== 'number') return undefined
  return toThreadTitle({ thread, title, user, tenant, time })
}
