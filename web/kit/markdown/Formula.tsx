/** A formula, drawn by the browser once its library is here. Until then, and if it has a mistake, it is shown as it is written. */
import { useEffect, useMemo, useState } from 'react'
import css from './Markdown.module.css'

type Draw = typeof import('./mathml.tsx').mathml

let loaded: Draw | undefined

/** Characters from which on one in a line may need to scroll. */
const wide = 40

interface Props {
  /** With its marks. */
  source: string
  /** Between them. Undefined: it is not finished. */
  tex: string | undefined
  isBlock: boolean
}

export function Formula({ source, tex, isBlock }: Props) {
  const draw = useMathMl(tex !== undefined)
  const drawn = useMemo(() => (tex === undefined ? undefined : draw?.(tex, isBlock)), [draw, tex, isBlock])
  if (drawn === undefined) {
    return isBlock ? <p className={css.formula}>{source}</p> : <span className={css.formula}>{source}</span>
  }
  const copied = (
    <span className={css.source} aria-hidden="true">
      {source}
    </span>
  )
  if (!isBlock) {
    return (
      <span className={css.drawn} data-wide={source.length > wide || undefined}>
        {drawn}
        {copied}
      </span>
    )
  }
  return (
    // It scrolls by keys when it has the focus.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <p className={css.drawnBlock} tabIndex={0}>
      {drawn}
      {copied}
    </p>
  )
}

function useMathMl(isWanted: boolean): Draw | undefined {
  const [draw, setDraw] = useState<Draw | undefined>(() => loaded)
  useEffect(() => {
    if (!isWanted || loaded !== undefined) return
    let isHere = true
    void import('./mathml.tsx').then(
      (module) => {
        loaded = module.mathml
        if (isHere) setDraw(() => loaded)
      },
      // Offline: a formula as it is written is a formula.
      () => undefined,
    )
    return () => {
      isHere = false
    }
  }, [isWanted])
  // It may have come for another formula.
  return draw ?? loaded
}
