/** On a narrow screen one column is seen at a time: the tabs lead to the others, as a swipe does. */
import { useEffect, useRef, useState, type RefObject } from 'react'
import type { RunStatus } from '../../../../src/part/log.ts'
import { useNarrow } from '../../../data/media.ts'
import { useQuery } from '../../../data/query.ts'
import { Status } from '../../../kit/Status.tsx'
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
  const { get, set } = useQuery()
  const shown = useRef(Number(get('show') ?? 1) - 1)
  useEffect(() => {
    if (!isNarrow) return
    const scrolled = box.current!
    const look = () => setAt(placeOf(scrolled))
    const keep = () => {
      look()
      shown.current = placeOf(scrolled)
      set({ show: shown.current === 0 ? undefined : String(shown.current + 1) }, { replace: true })
    }
    scrolled.children[shown.current]?.scrollIntoView({ inline: 'start', block: 'nearest' })
    scrolled.addEventListener('scroll', look, { passive: true })
    scrolled.addEventListener('scrollend', keep)
    return () => {
      scrolled.removeEventListener('scroll', look)
      scrolled.removeEventListener('scrollend', keep)
    }
  }, [box, isNarrow, set])
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

function placeOf({ scrollLeft, clientWidth }: HTMLElement): number {
  return Math.round(scrollLeft / Math.max(1, clientWidth))
}
