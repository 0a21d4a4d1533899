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

/** Marks a run, or unmarks it. The second one opens the comparison. Returns what is marked then. */
export function markForCompare(id: string): string | undefined {
  const first = marked()
  const next = first === undefined ? id : undefined
  try {
    if (next === undefined) sessionStorage.removeItem(name)
    else sessionStorage.setItem(name, next)
  } catch {
    return undefined
  }
  if (first !== undefined && first !== id) {
    navigate(`/compare?a=${encodeURIComponent(first)}&b=${encodeURIComponent(id)}`)
  }
  return next
}
