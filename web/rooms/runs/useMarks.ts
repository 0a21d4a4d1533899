/** The runs that are marked in the list. A single one is marked in all rooms, to be compared. */
import { useCallback, useEffect, useRef, useState } from 'react'
import type { RunRow } from '../../../src/part/log.ts'
import { keepMark, marked } from '../../data/compare-mark.ts'

/** In the order in which they were marked. Undefined: marked in another room, and not listed here. */
export type Marks = ReadonlyMap<string, RunRow | undefined>

export interface UsedMarks {
  marks: Marks
  /** `isRange`: with all rows from the last one that was marked. */
  toggle(run: RunRow, isRange?: boolean): void
  add(runs: readonly RunRow[]): void
  remove(ids: readonly string[]): void
  clear(): void
}

export function useMarks(rows: readonly RunRow[]): UsedMarks {
  const [marks, setMarks] = useState<Marks>(() => {
    const one = marked()
    return new Map(one === undefined ? [] : [[one, undefined]])
  })
  const latest = useRef({ rows, last: undefined as string | undefined })
  useEffect(() => {
    latest.current.rows = rows
  })
  useEffect(() => keepMark(marks.size === 1 ? [...marks.keys()][0] : undefined), [marks])
  const toggle = useCallback((run: RunRow, isRange = false) => {
    const { last } = latest.current
    setMarks((before) => withToggled(before, run, isRange ? rangeOf(latest.current.rows, last, run.id) : []))
    latest.current.last = run.id
  }, [])
  const add = useCallback(
    (runs: readonly RunRow[]) =>
      setMarks((before) => new Map([...before, ...runs.map((run) => [run.id, run] as const)])),
    [],
  )
  const remove = useCallback((ids: readonly string[]) => {
    const gone = new Set(ids)
    setMarks((before) => new Map([...before].filter(([id]) => !gone.has(id))))
  }, [])
  const clear = useCallback(() => setMarks(new Map()), [])
  return { marks, toggle, add, remove, clear }
}

/** With a range, all of it is marked; without one, the mark of the run is turned around. */
export function withToggled(before: Marks, run: RunRow, range: readonly RunRow[]): Marks {
  const next = new Map(before)
  if (range.length > 0) for (const each of range) next.set(each.id, each)
  else if (!next.delete(run.id)) next.set(run.id, run)
  return next
}

/** The rows from one to another, both included, whichever is first. None: one of them is not there. */
export function rangeOf(rows: readonly RunRow[], from: string | undefined, to: string): readonly RunRow[] {
  const ends = [from, to].map((id) => rows.findIndex((row) => row.id === id))
  if (ends.includes(-1)) return []
  return rows.slice(Math.min(...ends), Math.max(...ends) + 1)
}
