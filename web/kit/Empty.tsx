import type { ReactNode } from 'react'
import css from './states.module.css'

/** What a room says when it has nothing to show: a sentence, and what to do. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className={css.empty}>
      <h2>{title}</h2>
      {children !== undefined && <div className={css.hint}>{children}</div>}
    </div>
  )
}
