/** The run that is marked to be compared: in all rooms the same. The second one opens the comparison. */
import { useCallback, useState } from 'react'
import { marked, markForCompare } from '../../data/compare-mark.ts'

export function useMark(): { mark: string | undefined; toggle(id: string): void; clear(): void } {
  const [mark, setMark] = useState(marked)
  const toggle = useCallback((id: string) => setMark(markForCompare(id)), [])
  const clear = useCallback(() => {
    const before = marked()
    if (before !== undefined) setMark(markForCompare(before))
  }, [])
  return { mark, toggle, clear }
}
