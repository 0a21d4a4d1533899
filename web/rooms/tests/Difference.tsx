/** What was expected beside what came, with the words that only one of them has. */
import { useMemo } from 'react'
import type { Failure } from '../../../src/part/test-result.ts'
import { DiffText } from '../../kit/diff/DiffText.tsx'
import { diffWords, type DiffPiece } from '../../kit/diff/words.ts'
import css from './Tests.module.css'

export function Difference({ failure: { what, message, expected, got } }: { failure: Failure }) {
  return (
    <li className={css.failure} data-testid="failure">
      <p>
        <strong>{what}</strong> {message}
      </p>
      {expected !== undefined && got !== undefined ? (
        <Both expected={textOf(expected, got)} got={textOf(got, expected)} />
      ) : (
        got !== undefined && <Side title="Actual" pieces={[{ kind: 'same', text: textOf(got) }]} own="b" />
      )}
    </li>
  )
}

function Both({ expected, got }: { expected: string; got: string }) {
  const pieces = useMemo(() => diffWords(expected, got), [expected, got])
  return (
    <div className={css.pair}>
      <Side title="Expected" pieces={pieces} own="a" />
      <Side title="Actual" pieces={pieces} own="b" />
    </div>
  )
}

function Side({ title, pieces, own }: { title: string; pieces: readonly DiffPiece[]; own: 'a' | 'b' }) {
  return (
    <section className={css.side} aria-label={title}>
      <h3>{title}</h3>
      <div className={css.text}>
        <DiffText pieces={pieces} own={own} />
      </div>
    </section>
  )
}

/** "5" and 5 must not look the same. */
function textOf(value: unknown, other: unknown = ''): string {
  return typeof value === 'string' && typeof other === 'string' ? value : JSON.stringify(value, null, 2)
}
