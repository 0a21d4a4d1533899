/**
 * Counts the branches of a run that can still move. When the last of them waits for a client, nothing can go on without
 * an answer: that, and only that, is a suspended run.
 *
 * All of it is synchronous: between an answer and its branch going on there must be no moment in which the branch still
 * counts as waiting, or a run would be suspended with its answer already taken.
 */
export interface Strands {
  /** Settles when all tasks have; or with `abandoned`, from when on those that are left do not count any more. */
  fork(tasks: (() => Promise<void>)[], abandoned?: Promise<void>): Promise<void>
  /** A branch waits for something that only a client can give. */
  rest(): void
  /** It was given. */
  go(): void
}

export function createStrands(onAllResting: () => void): Strands {
  let moving = 1

  function rest(): void {
    moving--
    if (moving === 0) onAllResting()
  }

  return {
    rest,
    go() {
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
            // The last branch to end becomes the one that goes on behind the fork.
            if (!over && --left > 0) rest()
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
