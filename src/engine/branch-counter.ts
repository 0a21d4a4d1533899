/**
 * Counts the branches of a run that can make progress. When the last of them waits for a client, the run is suspended.
 *
 * Everything is synchronous: a branch must count as running from the moment its reply arrives. Otherwise a run could be suspended after its reply
 * was consumed.
 */
export interface BranchCounter {
  /** Settles when all tasks have settled, or when `abandoned` does. After that the remaining tasks no longer count. */
  fork(tasks: (() => Promise<void>)[], abandoned?: Promise<void>): Promise<void>
  /** Runs one more task beside the others. Settles like the task. */
  spawn(task: () => Promise<void>): Promise<void>
  /** A branch starts to wait for a client, or for its own tasks. */
  block(): void
  /** A branch continues. */
  unblock(): void
}

export function createBranchCounter(onAllBlocked: () => void): BranchCounter {
  let runnable = 1

  function countBlocked(): void {
    runnable--
    if (runnable === 0) onAllBlocked()
  }

  return {
    block: countBlocked,
    unblock() {
      runnable++
    },
    async spawn(task) {
      runnable++
      try {
        await task()
      } finally {
        countBlocked()
      }
    },
    async fork(tasks, abandoned) {
      if (tasks.length === 0) return
      runnable += tasks.length - 1
      let left = tasks.length
      let over = false
      const settling = Promise.allSettled(
        tasks.map(async (task) => {
          try {
            await task()
          } finally {
            // The last branch to end continues after the fork, so it still counts.
            if (!over && --left > 0) countBlocked()
          }
        }),
      )
      const settled = await (abandoned === undefined ? settling : Promise.race([settling, abandoned]))
      over = true
      if (left > 1) runnable -= left - 1
      for (const result of settled ?? []) if (result.status === 'rejected') throw result.reason
    },
  }
}
