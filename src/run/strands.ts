/**
 * Counts the branches of a run that can still move. When the last of them waits for a client, nothing can go on without
 * an answer: that, and only that, is a suspended run.
 */
export interface Strands {
  fork(tasks: (() => Promise<void>)[]): Promise<void>
  /** Waits for something that only a client can give. */
  block<T>(answer: Promise<T>): Promise<T>
}

export function createStrands(onAllBlocked: () => void): Strands {
  let moving = 1

  function rest(): void {
    moving--
    if (moving === 0) onAllBlocked()
  }

  return {
    async fork(tasks) {
      if (tasks.length === 0) return
      moving += tasks.length - 1
      let left = tasks.length
      const settled = await Promise.allSettled(
        tasks.map(async (task) => {
          try {
            await task()
          } finally {
            // The last branch to end becomes the one that goes on behind the fork.
            if (--left > 0) rest()
          }
        }),
      )
      for (const result of settled) if (result.status === 'rejected') throw result.reason
    },
    async block(answer) {
      rest()
      try {
        return await answer
      } finally {
        moving++
      }
    },
  }
}
