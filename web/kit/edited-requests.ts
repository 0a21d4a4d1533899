/** Requests whose arguments somebody is changing here: nobody allows them together with others, without what was changed. */
import { useEffect, useSyncExternalStore } from 'react'

let edited: ReadonlySet<string> = new Set()
const listeners = new Set<() => void>()

function change(to: (ids: Set<string>) => void): void {
  const next = new Set(edited)
  to(next)
  edited = next
  for (const listener of listeners) listener()
}

export function useMarkEdited(requestId: string, isEdited: boolean): void {
  useEffect(() => {
    if (!isEdited) return
    change((ids) => ids.add(requestId))
    return () => change((ids) => ids.delete(requestId))
  }, [requestId, isEdited])
}

/** The ids of those that are edited now. */
export function useEdited(): ReadonlySet<string> {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    () => edited,
  )
}
