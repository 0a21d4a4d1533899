/** What happens on the server, as it happens: entries of runs, rows of the list of runs, the agents. */
import type { Entry } from '../../src/part/entry.ts'
import type { RunRow } from '../../src/part/log.ts'
import { api, client } from './client.ts'

/** The state of the connection to the server. */
export type Connection =
  | { state: 'connecting' | 'open' | 'unauthorized' }
  | { state: 'offline'; /** Epoch ms. */ retryAt: number }

export interface Follower {
  /** Entries in order, without gaps or doubles. Deltas may be merged (`firstSeq`). */
  onEntries(entries: readonly Entry[]): void
  /** The run does not exist, or not any more. */
  onGone?(): void
}

/** Follows a run from after this `seq` until it ends or the returned function is called. */
export function followRun(runId: string, after: number, { onEntries, onGone }: Follower): () => void {
  const leave = new AbortController()
  void (async () => {
    try {
      for await (const entry of client().follow(runId, after, { signal: leave.signal })) {
        if (leave.signal.aborted) return
        onEntries([entry])
      }
    } catch {
      if (!leave.signal.aborted) onGone?.()
    }
  })()
  return () => leave.abort()
}

/** Rows of runs that have changed. */
export function followRows(onRows: (rows: readonly RunRow[]) => void): () => void {
  const look = () =>
    void api<{ runs: RunRow[] }>('/api/runs?limit=50').then(
      ({ runs }) => onRows(runs),
      () => undefined,
    )
  const timer = setInterval(look, 1000)
  return () => clearInterval(timer)
}

/** Called when agents were loaded again. */
export function followAgents(_onAgents: () => void): () => void {
  return () => undefined
}

const connection: Connection = { state: 'open' }

export function readConnection(): Connection {
  return connection
}

export function onConnection(_listener: () => void): () => void {
  return () => undefined
}
