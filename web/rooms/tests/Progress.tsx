/** The run of tests that goes on, or what came of the last one. */
import { useState } from 'react'
import { useNow } from '../../data/media.ts'
import { Button } from '../../kit/Button.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { duration } from '../../kit/format.ts'
import { since } from '../../kit/when.ts'
import { stopTests } from '../../data/tests.ts'
import { progressWords } from './tests-view.ts'
import type { TestsProgress } from './use-tests.ts'
import css from './Tests.module.css'

interface Props {
  progress: TestsProgress
  mayRun: boolean
}

export function Progress({ progress: { run, isRunning, error, start }, mayRun }: Props) {
  const now = useNow(1000)
  const [stopping, setStopping] = useState<string>()
  const [fault, setFault] = useState<unknown>()
  const shown = error ?? fault
  if (run === undefined) return shown === undefined ? null : <ErrorNote error={shown} />
  const { total, passed, failed, stopped, startedAt, endedAt, models, record, isInterrupted } = run
  const stop = () => {
    setStopping(run.id)
    setFault(undefined)
    stopTests().catch((each: unknown) => {
      setStopping(undefined)
      setFault(each)
    })
  }
  const how = [record ? 'asking the models' : '', models === undefined ? '' : `with ${models.join(', ')}`].filter(
    Boolean,
  )
  return (
    <>
      <div className={css.progress} data-testid="tests-progress" data-failed={failed > 0 || undefined}>
        <p aria-live="polite">
          <strong className="num">{progressWords(run)}</strong>
          {how.length > 0 && ` ${how.join(' ')}`}
        </p>
        {isRunning ? (
          <>
            <progress max={total} value={passed + failed} aria-label="Cases that have ended" />
            {mayRun && (
              <Button icon="stop" disabled={stopping === run.id} onClick={stop}>
                Stop
              </Button>
            )}
          </>
        ) : (
          <>
            <span className={css.soft}>
              {isInterrupted
                ? 'The server ended before the tests did.'
                : `in ${duration((endedAt ?? startedAt) - startedAt)}, ${since(endedAt ?? startedAt, now)}`}
            </span>
            {mayRun && stopped > 0 && (
              <Button icon="play" onClick={() => start({ rest: true })}>
                Run the other {stopped}
              </Button>
            )}
          </>
        )}
      </div>
      {run.error !== undefined && <ErrorNote error={{ message: run.error }} />}
      {shown !== undefined && <ErrorNote error={shown} />}
    </>
  )
}
