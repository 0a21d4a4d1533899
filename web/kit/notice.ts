/** A word at the edge of the page for two seconds, read aloud too: `notice('Link copied')`. */
import { useSyncExternalStore } from 'react'

let shown: { text: string } | undefined
let timer: ReturnType<typeof setTimeout> | undefined
const listeners = new Set<() => void>()

export function notice(text: string): void {
  clearTimeout(timer)
  tell({ text })
  timer = setTimeout(() => tell(undefined), 2000)
}

function tell(next: { text: string } | undefined): void {
  shown = next
  for (const listener of listeners) listener()
}

export function useNotice(): string | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    () => shown,
  )?.text
}
