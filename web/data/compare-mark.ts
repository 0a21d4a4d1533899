/** The run that is marked to be compared with another, for as long as the tab is open. */
import { navigate } from 'wouter/use-browser-location'

const name = 'millrace-compare'

export function marked(): string | undefined {
  try {
    return sessionStorage.getItem(name) ?? undefined
  } catch {
    return undefined
  }
}

/** `undefined`: none is marked. */
export function keepMark(id: string | undefined): void {
  try {
    if (id === undefined) sessionStorage.removeItem(name)
    else sessionStorage.setItem(name, id)
  } catch {
    // Nothing is marked where nothing can be kept.
  }
}

/** Marks a run, or unmarks it. The second one opens the comparison. Returns what is marked then. */
export function markForCompare(id: string): string | undefined {
  const first = marked()
  const next = first === undefined ? id : undefined
  keepMark(next)
  if (first !== undefined && first !== id) navigate(comparison(first, id))
  return marked() === next ? next : undefined
}

export function comparison(a: string, b: string): string {
  return `/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`
}
