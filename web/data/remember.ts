/** What the reader has set by hand, for all tabs and visits: theme, widths, keys. Without storage it lasts as long as the page. */
import { useSyncExternalStore } from 'react'

const prefix = 'millrace-'
const own = new Map<string, string>()
const listeners = new Set<() => void>()

export function remembered(name: string): string | undefined {
  try {
    return localStorage.getItem(prefix + name) ?? own.get(name)
  } catch {
    return own.get(name)
  }
}

/** `undefined` forgets it. */
export function remember(name: string, value: string | undefined): void {
  if (value === undefined) own.delete(name)
  else own.set(name, value)
  try {
    if (value === undefined) localStorage.removeItem(prefix + name)
    else localStorage.setItem(prefix + name, value)
  } catch {
    // Kept in `own`.
  }
  for (const listener of listeners) listener()
}

function onRemembered(listener: () => void): () => void {
  listeners.add(listener)
  // Another tab has set it.
  globalThis.addEventListener?.('storage', listener)
  return () => {
    listeners.delete(listener)
    globalThis.removeEventListener?.('storage', listener)
  }
}

export function useRemembered(name: string): string | undefined {
  return useSyncExternalStore(onRemembered, () => remembered(name))
}
