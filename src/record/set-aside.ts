/** Work at one run after another. A run at which it fails is set aside for a while, so that those behind it get their turn. */
import { MillraceError } from '../part/error.ts'
import type { Paced } from '../part/upkeep.ts'

/** The task that failed, as in “could not be archived”. */
export type UpkeepTask = 'compacted' | 'archived' | 'deleted'

export interface FailedTask {
  run: string
  task: UpkeepTask
  error: unknown
}

/** After so many failures one after the other it is not the runs: the pass ends. */
const mostInRow = 10
/** A run is left out of one pass, then of two, and so on: at most of so many. */
const longest = 60

/** Which runs are set aside, from pass to pass. */
export type SetAside = ReturnType<typeof createSetAside>

export function createSetAside() {
  const known = new Map<string, { until: number; wait: number }>()
  let pass = 0
  let fresh: FailedTask[] = []
  const keyOf = (task: UpkeepTask, run: string) => `${task} ${run}`

  return {
    /** Begins the next pass. */
    begin(): void {
      pass++
      fresh = []
      // Somebody else has done it, or the run is gone.
      for (const [key, { until }] of known) if (until + longest < pass) known.delete(key)
    },
    /** Runs that failed in this pass and not before, once each. */
    failures: (): FailedTask[] => fresh.filter(({ run }, i) => fresh.findIndex((each) => each.run === run) === i),
    get size() {
      return known.size
    },
    /** Those whose turn it is: first those that have not failed yet. */
    due(task: UpkeepTask, runs: readonly string[]): string[] {
      const hasFailed = (run: string) => known.has(keyOf(task, run))
      const isDue = (run: string) => (known.get(keyOf(task, run))?.until ?? 0) <= pass
      const due = runs.filter(isDue)
      return [...due.filter((run) => !hasFailed(run)), ...due.filter(hasFailed)]
    },
    add(failure: FailedTask): void {
      const key = keyOf(failure.task, failure.run)
      const wait = Math.min(longest, (known.get(key)?.wait ?? 0) * 2 || 1)
      if (!known.has(key)) fresh.push(failure)
      known.set(key, { until: pass + wait, wait })
    },
    delete: (task: UpkeepTask, run: string): void => void known.delete(keyOf(task, run)),
  }
}

/** Runs a task on runs. It ends with the error of `rest`, or when too many runs fail. */
export function createWorker(task: UpkeepTask, aside: SetAside, { rest }: Paced) {
  let isStopped = false
  let inRow = 0

  async function pause(): Promise<void> {
    try {
      await rest?.()
    } catch (error) {
      isStopped = true
      throw error
    }
  }

  return {
    paced: (rest === undefined ? {} : { rest: pause }) satisfies Paced,
    /** Undefined if it failed: then the run is set aside. */
    async attempt<T>(run: string, work: () => Promise<T>): Promise<T | undefined> {
      try {
        const done = await work()
        inRow = 0
        aside.delete(task, run)
        return done
      } catch (error) {
        if (isStopped || (error instanceof MillraceError && error.code === 'store-closed')) throw error
        aside.add({ run, task, error })
        if (++inRow >= mostInRow) throw error
        return undefined
      }
    },
  }
}
