import type { RunStatus } from '../../src/part/log.ts'
import { statusGlyph, statusInFull, statusWord } from './status-words.ts'
import css from './Status.module.css'

/** A run's status: a glyph in its colour, and the word beside it or read aloud. */
export function Status({ status, compact = false }: { status: RunStatus; compact?: boolean }) {
  const word = statusWord(status)
  const inFull = statusInFull(status)
  return (
    <span className={css.status} data-status={status} title={compact || inFull !== word ? inFull : undefined}>
      <span aria-hidden="true" className={css.glyph}>
        {statusGlyph(status)}
      </span>
      <span className={compact ? 'visually-hidden' : undefined}>{word}</span>
    </span>
  )
}
