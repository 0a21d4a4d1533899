import type { DiffPiece } from './words.ts'
import css from './DiffText.module.css'

/** One of two texts, with the words that only it has. */
export function DiffText({ pieces, own }: { pieces: readonly DiffPiece[]; own: 'a' | 'b' }) {
  const Mark = own === 'a' ? 'del' : 'ins'
  return (
    <span className={css.diff}>
      {pieces.map(({ kind, text }, i) =>
        kind === 'same' ? <span key={i}>{text}</span> : kind === own && <Mark key={i}>{text}</Mark>,
      )}
    </span>
  )
}
