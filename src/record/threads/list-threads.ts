/**
 * Conversations as rows, newest first: by when the newest run of each was started. They are read from the tables of the store, in one
 * query; a store without tables keeps so few runs that they are folded instead.
 */
import { pause } from '../../async/pause.ts'
import { MillraceError } from '../../part/error.ts'
import type { Store } from '../../part/log.ts'
import type { Records } from '../../part/records.ts'
import { timeOf } from '../../part/store-time.ts'
import { defaultCloseAfterMs, type ThreadQuery, type ThreadRow, type ThreadRule } from '../../part/thread.ts'
import { foldThreads } from './fold-threads.ts'
import { queryThreads } from './query-threads.ts'

/** A store, or as much of one as is needed. */
export type ThreadSource = Pick<Store, 'log' | 'runs' | 'records' | 'now'>

/** ms to wait for the tables. They lag behind by less, unless they are being built again: then they say what they have. */
const patience = 200

/**
 * Lists the conversations of a store. `rule`: when they count as closed; default 30 days without an entry.
 *
 * Rejects with `unknown-thread` (404) if there is no thread `before`, and with `bad-query` if `q` cannot be understood.
 */
export async function listThreads(
  store: ThreadSource,
  query: ThreadQuery = {},
  rule: ThreadRule = { closeAfterMs: defaultCloseAfterMs, now: timeOf(store) },
): Promise<ThreadRow[]> {
  const { records } = store
  if (query.before !== undefined) await existing(store, query.before)
  if (records === undefined) return foldThreads(store, query, rule)
  await upToDate(records)
  return queryThreads(records, query, rule)
}

/** One thread. Undefined if it has no runs. */
export async function readThread(store: ThreadSource, id: string, rule: ThreadRule): Promise<ThreadRow | undefined> {
  const { records } = store
  if (records === undefined) return (await foldThreads(store, { id }, rule))[0]
  await upToDate(records)
  return (await queryThreads(records, { id }, rule))[0]
}

async function upToDate(records: Records): Promise<void> {
  const leave = new AbortController()
  await Promise.race([records.settle(), pause(patience, leave.signal, { background: true })])
  leave.abort()
}

async function existing({ runs }: ThreadSource, id: string): Promise<void> {
  const [run] = await runs.list({ threadId: id, limit: 1 })
  if (run !== undefined) return
  throw new MillraceError('unknown-thread', `unknown thread ${id} in \`before\`: list again without it`, {
    status: 404,
  })
}
