import { useMemo } from 'react'
import { DiffText } from '../../kit/diff/DiffText.tsx'
import { Empty } from '../../kit/Empty.tsx'
import type { Compared } from './compared.ts'
import { diffWords, type DiffPiece } from '../../kit/diff/words.ts'
import css from './Compare.module.css'

/** What each said, with the words that only one of them has. */
export function TextPair({ a, b }: Compared) {
  if (a.text === '' && b.text === '') return <Empty title="Neither run has said anything." />
  return <Words name="Text" a={a.text} b={b.text} />
}

/** Two texts beside each other. An undefined one is not there. */
export function Words({
  name,
  a,
  b,
  isCode = false,
}: {
  name: string
  a: string | undefined
  b: string | undefined
  isCode?: boolean
}) {
  const pieces = useMemo(() => diffWords(a ?? '', b ?? ''), [a, b])
  return (
    <div className={css.pair} data-code={isCode || undefined}>
      <Side side="A" name={name} pieces={a === undefined ? undefined : pieces} own="a" />
      <Side side="B" name={name} pieces={b === undefined ? undefined : pieces} own="b" />
    </div>
  )
}

interface SideProps {
  side: string
  name: string
  pieces: readonly DiffPiece[] | undefined
  own: 'a' | 'b'
}

function Side({ side, name, pieces, own }: SideProps) {
  if (pieces === undefined) {
    return (
      <section className={css.text} data-side={side} data-none aria-label={`${name} of ${side}`}>
        {side} has none.
      </section>
    )
  }
  return (
    <section className={css.text} data-side={side} aria-label={`${name} of ${side}`}>
      <DiffText pieces={pieces} own={own} />
    </section>
  )
}
