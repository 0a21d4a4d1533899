/** Finds the run that answers a request which may be a repetition: the run that has its key, or a new one. */
import type { RunRow, Store } from '../part/log.ts'
import { awaitStart } from './announced-run.ts'
import type { Announcements } from './announcements.ts'
import { keptOf } from '../fold/read-view.ts'

export interface TurnClaim {
  store: Store
  threadId: string | undefined
  key: string
  /** The id of the run that the caller would start. It must be announced. */
  run: string
  announcements: Pick<Announcements, 'beginning'>
  shutdown: AbortSignal
}

/**
 * The run with the key: the caller's own, which it must start, or one that exists. A repeated or concurrent request reads the run
 * of the first one; if the first one was refused, it throws the same error.
 */
export async function claimTurn({ store, threadId, key, run, announcements, shutdown }: TurnClaim): Promise<string> {
  const inbox = threadId === undefined ? `key:${key}` : `thread:${threadId}`
  for (let after = ''; ;) {
    const { message } = await store.log.post(inbox, `turn:${key}${after}`, { run })
    const winner = (message as { run: string }).run
    if (winner === run) return run
    await announcements.beginning(winner)
    const row = await awaitStart(store, winner, shutdown)
    if (row !== undefined && !(await hasNoContent(store, row))) return winner
    // A run that did not start, or failed before its first content, may be retried. `Retry-After` tells clients when.
    after = `:after:${winner}`
  }
}

async function hasNoContent(store: Store, row: RunRow): Promise<boolean> {
  const { status } = row
  if (status !== 'failed' && status !== 'timed-out' && status !== 'interrupted') return false
  return (await keptOf(store, row))?.messages.length === 0
}
