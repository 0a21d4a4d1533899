/** The results of a case, the newest first; each opens to what differed. */
import { useState } from 'react'
import { Link } from 'wouter'
import type { TestResultRow } from '../../../src/part/test-result.ts'
import { useNow } from '../../data/media.ts'
import { Button } from '../../kit/Button.tsx'
import { cost, duration, moment } from '../../kit/format.ts'
import { since } from '../../kit/when.ts'
import { Difference } from './Difference.tsx'
import { TestMark } from './TestMark.tsx'
import css from './Tests.module.css'

export function History({ results }: { results: readonly TestResultRow[] }) {
  const now = useNow(10_000)
  const [open, setOpen] = useState<number>()
  if (results.length === 0) return null
  return (
    <section aria-labelledby="test-history">
      <h2 id="test-history">History</h2>
      <ul className={css.history}>
        {results.map((row) => (
          <li key={row.n} data-testid="result">
            <Result
              row={row}
              now={now}
              isOpen={open === row.n}
              onOpen={() => setOpen(open === row.n ? undefined : row.n)}
            />
          </li>
        ))}
      </ul>
    </section>
  )
}

interface Props {
  row: TestResultRow
  now: number
  isOpen: boolean
  onOpen(): void
}

function Result({ row, now, isOpen, onOpen }: Props) {
  const { status, time, user, model, source, isLive, run, failures, warnings, tokens } = row
  const facts = [
    duration(row.duration),
    tokens === 0 ? '' : `${tokens} tokens`,
    row.cost === undefined || row.cost === 0 ? '' : cost(row.cost),
    model ?? '',
    isLive ? 'asked the models' : 'recorded answers',
    source === 'terminal' ? 'in a terminal' : '',
    user === '' ? '' : `by ${user}`,
  ].filter(Boolean)
  const hasMore = failures.length + warnings.length > 0
  return (
    <>
      <div className={css.result}>
        <TestMark state={status === 'stopped' ? 'not run' : status} />
        <time className={css.small} dateTime={new Date(time).toISOString()} title={moment(time)}>
          {since(time, now)}
        </time>
        <span className={css.soft}>{facts.join(' · ')}</span>
        {hasMore && (
          <Button look="quiet" aria-expanded={isOpen} onClick={onOpen}>
            {failures.length > 0 ? 'What differed' : 'Warnings'}
          </Button>
        )}
        {run !== undefined && isLive && <Link href={`/runs/${encodeURIComponent(run)}`}>Open run</Link>}
      </div>
      {isOpen && (
        <ul className={css.failures}>
          {failures.map((failure, i) => (
            <Difference key={i} failure={failure} />
          ))}
          {warnings.map((warning) => (
            <li key={warning} className={css.warn}>
              {warning}
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
