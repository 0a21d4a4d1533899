/** The work of a shared store for this process, for monitors: counts since it was opened. Nothing here decides anything. */
export interface StoreStatus {
  connected: boolean
  /** For how long it has not been connected, in ms. */
  awayMs: number
  /** How long reads and writes wait while it is not, in ms; then they fail. */
  patienceMs: number
  reconnects: number
  /** By how much the clock of this machine is ahead of that of the store, in ms; negative: behind. 0 if no difference can be told. */
  clockAheadMs: number
  /** Claims of this process: runs that it goes on with, and those that others were faster with. */
  claims: { won: number; refused: number }
  /** Of those that were won: of runs whose process had died, or had given them away. */
  takeovers: number
  /** Writes that wait for the store. */
  pending: number
  /** Writes that the store has confirmed. One write has the entries of all runs of this process since the last one. Times are of the last 500. */
  commits: { count: number; seconds: number; p50Seconds: number; p99Seconds: number }
  /** Of the store, if it answers. `maxBytes`: 0 if it has no limit. */
  memory?: { usedBytes: number; maxBytes: number }
}
