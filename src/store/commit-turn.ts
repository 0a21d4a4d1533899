/**
 * When a commit comes. That of a lone run: at the end of this turn of the event loop. While several runs are under way: once a turn
 * had nothing else to do, and at most 2 ms later. Their writes share a transaction then, and what they do next comes in one go, while
 * its code is in the CPU's caches.
 */

/** Longest wait for the writes of other runs, in ms. */
const longestWait = 2
/** A turn that took less, in ms, did nothing but look. */
const emptyTurn = 0.06

export interface CommitTurn {
  soon(): void
  /** One turn later. */
  later(): void
}

/** `isAlone`: no other run is under way. `commit` may be called when there is nothing to commit. */
export function createCommitTurn(commit: () => void, isAlone: () => boolean): CommitTurn {
  let isWaiting = false
  let since = 0
  let turn = 0

  function look(): void {
    const now = performance.now()
    const isIdle = now - turn < emptyTurn
    turn = now
    if (!isIdle && now - since < longestWait && !isAlone()) return void setImmediate(look)
    isWaiting = false
    commit()
  }

  function soon(): void {
    if (isWaiting) return
    isWaiting = true
    since = turn = performance.now()
    setImmediate(look)
  }

  return { soon, later: () => void setImmediate(soon) }
}
