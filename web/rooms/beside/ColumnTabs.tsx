/** On a narrow screen one column is seen at a time: the tabs lead to the others, as a swipe does. */
import { useEffect, useState, type RefObject } from 'react'
import type { RunStatus } from '../../../src/part/log.ts'
import { useNarrow } from '../../data/media.ts'
import { Status } from '../../kit/Status.tsx'
import css from './beside.module.css'

interface Props {
  /** What is scrolled sideways. */
  box: RefObject<HTMLDivElement | null>
  columns: readonly { label: string; status: RunStatus | undefined }[]
}

export function ColumnTabs({ box, columns }: Props) {
  const isNarrow = useNarrow()
  const [at, setAt] = useState(0)
  useEffect(() => {
    const scrolled = box.current!
    const look = () => setAt(Math.round(scrolled.scrollLeft / Math.max(1, scrolled.clientWidth)))
    scrolled.addEventListener('scroll', look, { passive: true })
    return () => scrolled.removeEventListener('scroll', look)
  }, [box])
  if (!isNarrow) return null
  const show = (i: number) => box.current?.children[i]?.scrollIntoView({ inline: 'start', block: 'nearest' })
  return (
    <nav className={css.tabs} aria-label="Columns">
      {columns.map(({ label, status }, i) => (
        <button key={i} type="button" aria-current={i === at} title={label} onClick={() => show(i)}>
          <span>{label}</span>
          {status !== undefined && <Status status={status} compact />}
        </button>
      ))}
    </nav>
  )
}
