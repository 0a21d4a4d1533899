/** What a shared store does for this process, for monitors: counts since it was opened. Nothing here decides anything. */
export interface StoreStatus {
  connected: boolean
  reconnects: number
  /** Runs that this process took over from dead ones. */
  takenOver: number
  /** Claims of this process that the store refused. */
  claimsRefused: number
  /** Writes that the store has confirmed. One has what all runs of this process wrote meanwhile. */
  commits: { count: number; seconds: number; p50Seconds: number; p99Seconds: number }
  /** What waits to be written. */
  pendingWrites: number
  /** Of the store, if it answers. `maxBytes`: 0 if it has no limit. */
  memory?: { usedBytes: number; maxBytes: number }
}
