import { lazy, Suspense, useState } from 'react'
import { useLocation } from 'wouter'
import type { RunRow } from '../../../src/part/log.ts'
import { comparison } from '../../data/compare-mark.ts'
import { useMay } from '../../data/server.ts'
import { Button } from '../../kit/Button.tsx'
import type { BulkAction } from './bulk.ts'
import type { Counted } from './say-count.ts'
import type { UsedMarks } from './useMarks.ts'
import css from './RunsRoom.module.css'

const BulkDialog = lazy(() => import('./BulkDialog.tsx'))

interface Props {
  used: UsedMarks
  rows: readonly RunRow[]
  /** How many fit. */
  fitting: Counted | undefined
  /** Marks all that fit. */
  onMarkAll(): void
  /** These runs are gone. */
  onGone(ids: readonly string[]): void
}

/** What is marked, and what can be done with all of it. */
export function MarkBar({ used, rows, fitting, onMarkAll, onGone }: Props) {
  const { marks, clear } = used
  const [action, setAction] = useState<BulkAction>()
  const [, navigate] = useLocation()
  const mayStop = useMay('runs.stop')
  const mayDelete = useMay('runs.delete')
  const [first, second] = [...marks.keys()]
  if (first === undefined && action === undefined) return null
  const isAll = fitting !== undefined && marks.size >= fitting.count
  return (
    <>
      <div className={css.marks} role="group" aria-label="Marked runs">
        <p role="status">
          {marks.size === 1 ? (
            <>
              Marked: <b>{marks.get(first!)?.title ?? rows.find(({ id }) => id === first)?.title ?? first}</b>. Mark
              another run to compare.
            </>
          ) : (
            <b>{marks.size.toLocaleString('en-US')} marked</b>
          )}
        </p>
        {marks.size === 2 && (
          <Button look="primary" onClick={() => navigate(comparison(first!, second!))}>
            Compare
          </Button>
        )}
        {marks.size > 1 && fitting !== undefined && !isAll && (
          <Button look="quiet" onClick={onMarkAll}>
            {fitting.isMore
              ? `Mark the first ${fitting.count.toLocaleString('en-US')} that fit`
              : `Mark all ${fitting.count} that fit`}
          </Button>
        )}
        <Button onClick={() => setAction('export')}>Export</Button>
        {mayStop === true && <Button onClick={() => setAction('stop')}>Stop</Button>}
        {mayDelete === true && (
          <Button look="danger" onClick={() => setAction('delete')}>
            Delete
          </Button>
        )}
        <Button look="quiet" onClick={clear}>
          Clear
        </Button>
      </div>
      {action !== undefined && (
        <Suspense>
          <BulkDialog action={action} marks={marks} onClose={() => setAction(undefined)} onGone={onGone} />
        </Suspense>
      )}
    </>
  )
}
