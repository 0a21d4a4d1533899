/** Finds the run that answers a request which may be a repetition: the run that has its key, or a new one. */
import type { RunRow, Store } from '../part/log.ts'
import { keptOf } from '../fold/read-view.ts'

export interface TurnClaim {
  store: Store
  threadId: string | undefined
  key: string
  /** The id of the run that the caller would start. */
  run: string
  /** Runs that are about to start. Each promise resolves when the run has started and rejects when it was refused. */
  starting: ReadonlyMap<string, Promise<void>>
  /** Called synchronously when the caller must start this run. */
  announce: (run: string) => void
}

/**
 * `joined`: the run exists already. A repeated or concurrent request reads the run of the first one; if the first one was
 * refused, it throws the same error.
 */
export async function claimTurn(claim: TurnClaim): Promise<{ run: string; joined: boolean }> {
  const { store, threadId, key, run, starting, announce } = claim
  const place = threadId === undefined ? `key:${key}` : `thread:${threadId}`
  for (let after = ''; ;) {
    const { message } = await store.log.post(place, `turn:${key}${after}`, { run })
    const winner = (message as { run: string }).run
    if (winner === run) return { run, joined: false }
    await starting.get(winner)
    const row = await store.runs.get(winner)
    if (row === undefined) {
      if (starting.has(winner)) continue
      // Its process died before the run started: start it now.
      announce(winner)
      return { run: winner, joined: false }
    }
    if (!(await hasNoContent(store, row))) return { run: winner, joined: true }
    // A run that failed before its first content may be retried. `Retry-After` tells clients when.
    after = `:after:${winner}`
  }
}

async function hasNoContent(store: Store, row: RunRow): Promise<boolean> {
  const { status } = row
  if (status !== 'failed' && status !== 'timed-out' && status !== 'interrupted') return false
  return (await keptOf(store, row))?.messages.length === 0
}
