/** The run of tests, as it goes on: it may have been started in another tab, and goes on when this one is closed. */
import { useEffect, useRef, useState } from 'react'
import { followTests, startTests, type StartTests, type TestsRun } from '../../data/tests.ts'

export interface TestsProgress {
  run: TestsRun | undefined
  isRunning: boolean
  error: unknown
  start(what: StartTests): void
}

/** `known`: the run that the server told of. `onDone`: called now and then when cases have ended, at the end, and when the window is looked at again. */
export function useTests(known: TestsRun | null | undefined, onDone: () => void): TestsProgress {
  const [run, setRun] = useState<TestsRun>()
  const [error, setError] = useState<unknown>()
  const latest = newer(run, known ?? undefined)
  const done = useRef(onDone)
  const newest = useRef(latest)
  useEffect(() => {
    done.current = onDone
    newest.current = latest
  })
  useEffect(() => {
    // Somebody may come back from a terminal, where tests have run.
    const look = () => done.current()
    addEventListener('focus', look)
    return () => removeEventListener('focus', look)
  }, [])
  const active = latest !== undefined && latest.endedAt === undefined ? latest.id : undefined
  useEffect(() => {
    if (active === undefined) return
    const leave = new AbortController()
    void follow(newest.current!)
    return () => leave.abort()

    async function follow(shown: TestsRun) {
      let last = { count: 0, at: 0 }
      while (!leave.signal.aborted) {
        try {
          for await (const state of followTests(leave.signal)) {
            setError(undefined)
            // Null: the server knows nothing of it any more.
            shown = state ?? lost(shown)
            setRun(shown)
            const count = state === null ? 0 : state.passed + state.failed
            // Many cases take a few ms each.
            const isDue = count !== last.count && performance.now() - last.at > 1000
            if (!isDue && state !== null && state.endedAt === undefined) continue
            last = { count, at: performance.now() }
            done.current()
          }
        } catch (fault) {
          // A server that cannot be reached is told above every room, and may come back.
          const isAway = (fault as { code?: string }).code === 'connection-lost' || fault instanceof TypeError
          if (!leave.signal.aborted && !isAway) setError(fault)
        }
        // It was cut off.
        await new Promise((resolve) => setTimeout(resolve, 1000))
      }
    }
  }, [active])
  return {
    run: latest,
    isRunning: active !== undefined,
    error,
    start(what) {
      setError(undefined)
      startTests(what).then(({ run: started }) => setRun(started), setError)
    },
  }
}

/** A run whose server has gone. */
export function lost(run: TestsRun): TestsRun {
  const stopped = run.total - run.passed - run.failed
  return { ...run, stopped, running: [], endedAt: run.startedAt, isInterrupted: true }
}

/** Of two states of one run the later one, of two runs the later one. */
export function newer(a: TestsRun | undefined, b: TestsRun | undefined): TestsRun | undefined {
  if (a === undefined || b === undefined) return a ?? b
  if (a.id !== b.id) return a.startedAt >= b.startedAt ? a : b
  const rank = ({ passed, failed, endedAt }: TestsRun) => (endedAt === undefined ? passed + failed : Infinity)
  return rank(b) > rank(a) ? b : a
}
