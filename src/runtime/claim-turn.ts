/** Finds the run that answers a request which may be a repetition: the run that has its key, or a new one. */
import type { Log, NewMessage, Posted, RunRow, Store } from '../part/log.ts'
import { awaitStart } from './announced-run.ts'
import type { Announcements } from './announcements.ts'
import { keptOf } from '../fold/read-view.ts'
import { closingError } from './runtime-errors.ts'

export interface TurnClaim {
  store: Store
  threadId: string | undefined
  key: string
  /** The id of the run that the caller would start. It must be announced. */
  run: string
  /** The claim to a position in the thread, which is made in the same write if the run gets the key. */
  place?: NewMessage | undefined
  announcements: Pick<Announcements, 'beginning'>
  shutdown: AbortSignal
}

export interface ClaimedTurn {
  /** The run with the key. */
  winner: string
  /** What became of the claim to a position. */
  placed?: Posted | undefined
}

/**
 * The run with the key: the caller's own, which it must start, or one that exists. A repeated or concurrent request reads the run
 * of the first one; if the first one was refused, it throws the same error.
 */
export async function claimTurn(claim: TurnClaim): Promise<ClaimedTurn> {
  const { store, threadId, key, run, place, announcements, shutdown } = claim
  const inbox = threadId === undefined ? `key:${key}` : `thread:${threadId}`
  for (let after = ''; ;) {
    const turn = { key: `turn:${key}${after}`, message: { run } }
    const [claimed, placed] = await store.log.postAll(inbox, place === undefined ? [turn] : [turn, place])
    const winner = (claimed!.message as { run: string }).run
    if (winner === run) return { winner, placed }
    await announcements.beginning(winner)
    const row = await awaitStart(store, winner, shutdown)
    if (row !== undefined && !(await hasNoContent(store, row))) return { winner }
    if (shutdown.aborted) throw closingError()
    // A run that did not start, or failed before its first content, may be retried. `Retry-After` tells clients when.
    after = `:after:${winner}`
  }
}

/** Gives a key to a run that exists: a request with the key joins it. */
export async function claimFor(log: Log, threadId: string, key: string, run: string): Promise<void> {
  await log.post(`thread:${threadId}`, `turn:${key}`, { run })
}

async function hasNoContent(store: Store, row: RunRow): Promise<boolean> {
  const { status } = row
  if (status !== 'failed' && status !== 'timed-out' && status !== 'interrupted') return false
  return (await keptOf(store, row))?.messages.length === 0
}
