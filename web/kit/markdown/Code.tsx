/** A block of code: its language, a button that copies it, and colours once their library is here. */
import { useEffect, useState, type ReactNode } from 'react'
import { Copy } from '../Copy.tsx'
import css from './Markdown.module.css'

type Highlight = typeof import('./highlight.tsx').highlight

let loaded: Highlight | undefined

/** Longer code stays without colours: to find them takes longer than a frame. */
const longest = 50_000
const longestOpen = 4000

export function Code({ text, language, isOpen }: { text: string; language: string; isOpen: boolean }) {
  const name = language
    .trim()
    .split(/[\s{:,]/u, 1)[0]!
    .toLowerCase()
  const highlight = useHighlight(name !== '')
  const isColored = highlight !== undefined && name !== '' && text.length <= (isOpen ? longestOpen : longest)
  const shown: ReactNode = isColored ? highlight(name, text) : text
  return (
    <figure className={css.code}>
      <figcaption>
        <span>{name === '' ? 'text' : name.slice(0, 40)}</span>
        <Copy text={text} label="Copy code" />
      </figcaption>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre tabIndex={0}>
        <code>{shown}</code>
      </pre>
    </figure>
  )
}

function useHighlight(isWanted: boolean): Highlight | undefined {
  const [highlight, setHighlight] = useState<Highlight | undefined>(() => loaded)
  useEffect(() => {
    if (!isWanted || loaded !== undefined) return
    let isHere = true
    void import('./highlight.tsx').then(
      (module) => {
        loaded = module.highlight
        if (isHere) setHighlight(() => loaded)
      },
      // Offline: code without colours is code.
      () => undefined,
    )
    return () => {
      isHere = false
    }
  }, [isWanted])
  return highlight
}
