import type { TestState } from './tests-view.ts'
import css from './Tests.module.css'

const glyphs: Record<TestState, string> = { passed: '●', failed: '✕', running: '◐', 'not run': '○' }

/** The state of a case: a glyph in its colour, and the word beside it or read aloud. */
export function TestMark({ state, compact = false }: { state: TestState; compact?: boolean }) {
  return (
    <span className={css.mark} data-state={state} title={compact ? state : undefined}>
      <span aria-hidden="true">{glyphs[state]}</span>
      <span className={compact ? 'visually-hidden' : undefined}>{state}</span>
    </span>
  )
}
