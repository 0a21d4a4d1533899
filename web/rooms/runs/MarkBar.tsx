import { useLocation } from 'wouter'
import { Button } from '../../kit/Button.tsx'
import type { RunRow } from '../../../src/part/log.ts'
import css from './RunsRoom.module.css'

/** What is marked to be compared. */
export function MarkBar({ marks, rows, clear }: { marks: readonly string[]; rows: readonly RunRow[]; clear(): void }) {
  const [, navigate] = useLocation()
  if (marks.length === 0) return null
  const [a, b] = marks.map((id) => rows.find((row) => row.id === id)?.title ?? id)
  return (
    <output className={css.marks}>
      <p>
        {b === undefined ? (
          <>
            Marked: <b>{a}</b>. Mark another run to compare.
          </>
        ) : (
          <>
            <b>{a}</b> and <b>{b}</b>
          </>
        )}
      </p>
      <Button look="quiet" onClick={clear}>
        Clear
      </Button>
      <Button
        look="primary"
        disabled={marks.length < 2}
        onClick={() => navigate(`/compare?${new URLSearchParams({ a: marks[0]!, b: marks[1]! })}`)}
      >
        Compare
      </Button>
    </output>
  )
}
