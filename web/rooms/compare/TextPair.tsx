import { useMemo } from 'react'
import { Empty } from '../../kit/Empty.tsx'
import type { Compared } from './compared.ts'
import { diffWords, type DiffPiece } from './words.ts'
import css from './Compare.module.css'

/** What each said, with the words that only one of them has. */
export function TextPair({ a, b }: Compared) {
  const pieces = useMemo(() => diffWords(a.text, b.text), [a.text, b.text])
  if (pieces.length === 0) return <Empty title="Neither run has said anything." />
  return (
    <div className={css.pair}>
      <Side side="A" pieces={pieces} own="a" />
      <Side side="B" pieces={pieces} own="b" />
    </div>
  )
}

function Side({ side, pieces, own }: { side: string; pieces: readonly DiffPiece[]; own: 'a' | 'b' }) {
  const Mark = own === 'a' ? 'del' : 'ins'
  return (
    <section className={css.text} data-side={side} aria-label={`Text of ${side}`}>
      {pieces.map(({ kind, text }, i) =>
        kind === 'same' ? <span key={i}>{text}</span> : kind === own && <Mark key={i}>{text}</Mark>,
      )}
    </section>
  )
}
