/** On a narrow screen one column is seen at a time: the tabs lead to the others, as a swipe does. */
import { useEffect, useState, type RefObject } from 'react'
import type { RunStatus } from '../../../src/part/log.ts'
import { useNarrow } from '../../data/media.ts'
import { Status } from '../../kit/Status.tsx'
import css from './beside.module.css'

interface Props {
  /** What is scrolled sideways. */
  box: RefObject<HTMLDivElement | null>
  /** `status`: of the last answer. */
  columns: readonly { name: string; status: RunStatus | undefined }[]
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
      {columns.map(({ name, status }, i) => (
        <button
          key={i}
          type="button"
          aria-current={i === at}
          aria-label={`${i + 1} ${name}`}
          title={name}
          onClick={() => show(i)}
        >
          <span>
            {i + 1}
            <span className={css.name}> {name}</span>
          </span>
          {status !== undefined && <Status status={status} compact />}
        </button>
      ))}
    </nav>
  )
}
