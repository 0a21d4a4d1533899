import type { RunRow } from '../../../src/part/log.ts'
import { Button } from '../../kit/Button.tsx'
import css from './RunsRoom.module.css'

interface Props {
  mark: string | undefined
  rows: readonly RunRow[]
  clear(): void
}

/** What is marked to be compared. */
export function MarkBar({ mark, rows, clear }: Props) {
  if (mark === undefined) return null
  return (
    <output className={css.marks}>
      <p>
        Marked: <b>{rows.find(({ id }) => id === mark)?.title ?? mark}</b>. Mark another run to compare.
      </p>
      <Button look="quiet" onClick={clear}>
        Clear
      </Button>
    </output>
  )
}
