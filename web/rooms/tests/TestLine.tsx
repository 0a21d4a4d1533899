/** A case in the list: what it is called, what came of it last, and why it failed. */
import { Link } from 'wouter'
import { Button } from '../../kit/Button.tsx'
import { cost, duration, moment } from '../../kit/format.ts'
import { since } from '../../kit/when.ts'
import type { TestRow } from '../../data/tests.ts'
import { TestMark } from './TestMark.tsx'
import type { TestState } from './tests-view.ts'
import css from './Tests.module.css'

interface Props {
  row: TestRow
  state: TestState
  now: number
  isChosen: boolean
  /** Absent: the reader may not. */
  onChoose: (() => void) | undefined
  onRun: (() => void) | undefined
}

export function TestLine({
  row: { id, name, turns, isRecorded, hasChange, last },
  state,
  now,
  isChosen,
  onChoose,
  onRun,
}: Props) {
  const why = state === 'failed' ? last?.failures[0]?.message : undefined
  return (
    <li className={css.line} data-testid="test-row" data-state={state}>
      {onChoose === undefined ? (
        <span />
      ) : (
        <input type="checkbox" checked={isChosen} aria-label={`Choose ${name}`} onChange={onChoose} />
      )}
      <TestMark state={state} compact />
      <span className={css.name}>
        <Link href={`/tests/${encodeURIComponent(id)}`} title={name} data-row>
          {name}
        </Link>
        <span className={css.about}>
          {turns > 1 && <small>{turns} turns</small>}
          {!isRecorded && <small className={css.warn}>no recording</small>}
          {hasChange && <small className={css.warn}>new answer</small>}
          {last !== undefined && last.warnings > 0 && <small className={css.warn}>the prompt has changed</small>}
          {why !== undefined && (
            <span className={css.why} title={why}>
              {why}
            </span>
          )}
        </span>
      </span>
      <span className={css.model}>{last?.model ?? (last?.isLive === true ? 'models asked' : '')}</span>
      <span className={css.small} title={last === undefined ? undefined : moment(last.time)}>
        {last === undefined ? '' : since(last.time, now)}
      </span>
      <span className={css.small}>{last === undefined ? '' : duration(last.duration)}</span>
      <span className={css.small}>{last?.cost === undefined || last.cost === 0 ? '' : cost(last.cost)}</span>
      {onChoose === undefined ? (
        <span />
      ) : (
        <Button icon="play" look="quiet" aria-label={`Run ${name}`} disabled={onRun === undefined} onClick={onRun} />
      )}
    </li>
  )
}
