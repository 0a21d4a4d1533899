/** Deletes one run, or the runs of a conversation. Says why, and the cure, when one may not be deleted. */
import { omitUndefined } from '../part/omit-undefined.ts'
import { MillraceError } from '../part/error.ts'
import { hasEnded, type RunRow, type Store } from '../part/log.ts'
import type { Paced } from '../part/upkeep.ts'

/** Ids of the runs that were deleted. */
export interface Deleted {
  deleted: string[]
}

/** Throws `unknown-run`, or `run-kept` if it may not be deleted (now). */
export async function deleteRun(store: Store, run: string, paced: Paced = {}): Promise<Deleted> {
  const row = await store.runs.get(run)
  if (row === undefined || !(await drop(store, row, paced))) {
    throw new MillraceError('unknown-run', `There is no run ${run}.`)
  }
  await store.upkeep?.erase?.(paced)
  return { deleted: [run] }
}

/**
 * The newest first. Throws `unknown-thread`, or `run-kept` if a run is active: then all are there. If forks of a run are left in another
 * conversation, that run stays, and those before it.
 */
export async function deleteThread(store: Store, threadId: string, paced: Paced = {}): Promise<Deleted> {
  const rows: RunRow[] = []
  for (let before: string | undefined; ;) {
    const page = await store.runs.list(omitUndefined({ threadId, limit: 1000, before }))
    rows.push(...page)
    before = page.at(-1)?.id
    if (page.length < 1000) break
  }
  const active = rows.find(({ status }) => !hasEnded(status))
  if (active !== undefined) throw isActive(active)
  const deleted: string[] = []
  try {
    for (const row of rows) if (await drop(store, row, paced)) deleted.push(row.id)
  } finally {
    if (deleted.length > 0) await store.upkeep?.erase?.(paced)
  }
  if (deleted.length === 0) throw new MillraceError('unknown-thread', `There is no thread ${threadId}.`)
  return { deleted }
}

/** Resolves with whether it did: false if somebody else has just deleted the run. */
async function drop(store: Store, row: RunRow, paced: Paced): Promise<boolean> {
  if (store.upkeep === undefined) {
    throw new MillraceError('bad-request', 'These runs are in memory: they go when the process ends.')
  }
  if (!hasEnded(row.status)) throw isActive(row)
  if (await store.upkeep.drop(row.id, paced)) return true
  if ((await store.runs.get(row.id)) === undefined) return false
  throw await whyKept(store, row)
}

async function whyKept({ runs, records }: Store, { id, threadId, parentRunId }: RunRow): Promise<MillraceError> {
  const [next] = (await runs.list({ threadId, limit: 10 })).filter(({ status }) => !hasEnded(status))
  if (next !== undefined) return cannotDelete(`Run ${next.id} of its conversation is ${next.status}`, stop(next.id))
  const caller = parentRunId === undefined ? undefined : await runs.get(parentRunId)
  if (caller !== undefined && !hasEnded(caller.status))
    return cannotDelete(`Run ${caller.id}, which called it, is ${caller.status}`, stop(caller.id))
  const sql = 'SELECT run FROM forks WHERE source = :id ORDER BY run LIMIT 4'
  const forks = await records?.query(sql, { parameters: { id } }).catch(() => undefined)
  const names = forks?.rows.map(([run]) => String(run)).join(', ')
  return cannotDelete(`Forks share the log of run ${id}${names ? `: ${names}` : ''}`, 'Delete them first.')
}

function isActive({ id, status }: RunRow): MillraceError {
  return cannotDelete(`Run ${id} is ${status}`, stop(id))
}

function stop(id: string): string {
  return `Stop it first: millrace stop ${id}, or POST /api/runs/${encodeURIComponent(id)}/stop.`
}

function cannotDelete(why: string, cure: string): MillraceError {
  return new MillraceError('run-kept', `${why}. ${cure}`, { status: 409 })
}
