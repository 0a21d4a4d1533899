import type { RunStatus } from '../../src/part/log.ts'
import css from './Status.module.css'

const words: Record<RunStatus, [glyph: string, word: string]> = {
  running: ['◐', 'running'],
  suspended: ['‖', 'waits'],
  completed: ['●', 'completed'],
  failed: ['✕', 'failed'],
  aborted: ['■', 'stopped'],
  'budget-exceeded': ['▲', 'over budget'],
  'timed-out': ['◔', 'timed out'],
  interrupted: ['↯', 'interrupted'],
}

/** A run's status: a glyph in its colour, and the word beside it or read aloud. */
export function Status({ status, compact = false }: { status: RunStatus; compact?: boolean }) {
  const [glyph, word] = words[status]
  return (
    <span className={css.status} data-status={status} title={compact ? word : undefined}>
      <span aria-hidden="true" className={css.glyph}>
        {glyph}
      </span>
      <span className={compact ? 'visually-hidden' : undefined}>{word}</span>
    </span>
  )
}
