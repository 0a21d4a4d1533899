/** Which run answers a request that may have come before: the one that holds its key, or a new one. */
import type { RunRow, Store } from '../part/log.ts'
import { readView } from './history.ts'

export interface TurnClaim {
  store: Store
  threadId: string | undefined
  key: string
  /** The id of the run that the caller would begin. */
  run: string
  /** Runs that are about to begin: each settles when it has, and rejects when it was refused. */
  starting: ReadonlyMap<string, Promise<void>>
  /** Says, at once, that the caller begins this run. */
  announce: (run: string) => void
}

/**
 * `joined`: the run is there already. The same request again, or twice at once, reads the first one's run, or is refused as
 * that was (it throws the same).
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
      // Announced and never begun, because its process died in between: it is begun now.
      announce(winner)
      return { run: winner, joined: false }
    }
    if (!(await saidNothing(store, row))) return { run: winner, joined: true }
    // A run that failed before its first word may be asked for again: clients are told when, by Retry-After.
    after = `:after:${winner}`
  }
}

async function saidNothing(store: Store, { id, status }: RunRow): Promise<boolean> {
  if (status !== 'failed' && status !== 'timed-out' && status !== 'interrupted') return false
  return (await readView(store, id))?.messages.length === 0
}
