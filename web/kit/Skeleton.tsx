import css from './states.module.css'

/** Rows that are not there yet. Shows after 150 ms, so that what is fast does not flicker. */
export function Skeleton({ rows = 3 }: { rows?: number }) {
  return (
    <output className={css.skeleton} aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, i) => (
        <div key={i} className={css.bone} />
      ))}
    </output>
  )
}
