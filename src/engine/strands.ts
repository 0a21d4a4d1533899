/**
 * Counts the branches of a run that can make progress. When the last of them waits for a client, the run is suspended.
 *
 * Everything is synchronous: a branch must count as running from the moment its answer arrives. Otherwise a run could be
 * suspended after its answer was consumed.
 */
export interface Strands {
  /** Settles when all tasks have settled, or when `abandoned` does. After that the remaining tasks no longer count. */
  fork(tasks: (() => Promise<void>)[], abandoned?: Promise<void>): Promise<void>
  /** A branch starts to wait for a client. */
  park(): void
  /** A branch continues. */
  unpark(): void
}

export function createStrands(onAllParked: () => void): Strands {
  let moving = 1

  function park(): void {
    moving--
    if (moving === 0) onAllParked()
  }

  return {
    park,
    unpark() {
      moving++
    },
    async fork(tasks, abandoned) {
      if (tasks.length === 0) return
      moving += tasks.length - 1
      let left = tasks.length
      let over = false
      const settling = Promise.allSettled(
        tasks.map(async (task) => {
          try {
            await task()
          } finally {
            // The last branch to end continues after the fork, so it still counts.
            if (!over && --left > 0) park()
          }
        }),
      )
      const settled = await (abandoned === undefined ? settling : Promise.race([settling, abandoned]))
      over = true
      if (left > 1) moving -= left - 1
      for (const result of settled ?? []) if (result.status === 'rejected') throw result.reason
    },
  }
}
