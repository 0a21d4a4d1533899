/** The runs that are marked to be compared: at most two. They stand in the URL as `mark`. */
import { useCallback } from 'react'
import type { Query } from '../../data/query.ts'

export function useMarks(query: Query): { marks: readonly string[]; toggle(id: string): void; clear(): void } {
  const { get, set } = query
  const text = get('mark')
  const marks = text?.split(',') ?? []
  const toggle = useCallback(
    (id: string) => set({ mark: withMark(text?.split(',') ?? [], id).join(',') }, { replace: true }),
    [text, set],
  )
  const clear = useCallback(() => set({ mark: undefined }, { replace: true }), [set])
  return { marks, toggle, clear }
}

/** A third one takes the place of the second. */
export function withMark(marks: readonly string[], id: string): readonly string[] {
  if (marks.includes(id)) return marks.filter((each) => each !== id)
  return [...marks.slice(0, 1), id]
}
