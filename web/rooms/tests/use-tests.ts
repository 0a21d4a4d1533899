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
  const done = useRef(onDone)
  useEffect(() => {
    done.current = onDone
  })
  useEffect(() => {
    // Somebody may come back from a terminal, where tests have run.
    const look = () => done.current()
    addEventListener('focus', look)
    return () => removeEventListener('focus', look)
  }, [])
  const latest = newer(run, known ?? undefined)
  const active = latest !== undefined && latest.endedAt === undefined ? latest.id : undefined
  useEffect(() => {
    if (active === undefined) return
    const leave = new AbortController()
    void follow()
    return () => leave.abort()

    async function follow() {
      let last = { count: 0, at: 0 }
      try {
        for await (const state of followTests(leave.signal)) {
          if (state === null) break
          setRun(state)
          const count = state.passed + state.failed
          // Many cases take a few ms each.
          const isDue = count !== last.count && performance.now() - last.at > 1000
          if (!isDue && state.endedAt === undefined) continue
          last = { count, at: performance.now() }
          done.current()
        }
      } catch (fault) {
        if (!leave.signal.aborted) setError(fault)
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

/** Of two states of one run the later one, of two runs the later one. */
export function newer(a: TestsRun | undefined, b: TestsRun | undefined): TestsRun | undefined {
  if (a === undefined || b === undefined) return a ?? b
  if (a.id !== b.id) return a.startedAt >= b.startedAt ? a : b
  const rank = ({ passed, failed, endedAt }: TestsRun) => passed + failed + (endedAt === undefined ? 0 : 0.5)
  return rank(b) > rank(a) ? b : a
}
