/**
 * The token with which this tab may edit agents, if the server wants one. It comes behind the `#` of the address that `millrace serve`
 * prints, which browsers send nowhere, and is taken out of the address at once.
 */
import { useSyncExternalStore } from 'react'

const name = 'millrace-edit-token'
const inFragment = /^#edit=([\w-]+)$/u
const listeners = new Set<() => void>()
let token: string | undefined

export function takeEditToken(page: Pick<Window, 'location' | 'history' | 'sessionStorage'>): void {
  const { location, history } = page
  const given = inFragment.exec(location.hash)?.[1]
  if (given !== undefined) history.replaceState(history.state, '', location.pathname + location.search)
  token = given ?? token
  try {
    if (given !== undefined) page.sessionStorage.setItem(name, given)
    else token = page.sessionStorage.getItem(name) ?? token
  } catch {
    // Without storage it lasts as long as the page.
  }
  for (const listener of listeners) listener()
}

export function readEditToken(): string | undefined {
  return token
}

/** Whether this tab may edit, by what the server says. */
export function useMayEdit(edit: boolean | 'token' | undefined): boolean {
  const own = useSyncExternalStore(onToken, readEditToken)
  return edit === true || (edit === 'token' && own !== undefined)
}

function onToken(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}
