import { useCallback, useState } from 'react'

/** A number for each column that stays its own when another one is removed: the address only has an order. */
export function useColumnIds(count: number): { ids: readonly number[]; remove(id: number): void } {
  const [state, setState] = useState<{ ids: readonly number[]; next: number }>({ ids: [], next: 1 })
  let { ids, next } = state
  if (ids.length !== count) {
    ids = ids.slice(0, count)
    while (ids.length < count) ids = [...ids, next++]
    setState({ ids, next })
  }
  const remove = useCallback(
    (id: number) => setState((before) => ({ ...before, ids: before.ids.filter((each) => each !== id) })),
    [],
  )
  return { ids, remove }
}
