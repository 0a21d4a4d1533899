/** The server's key, for as long as the tab is open. It is sent in a header and never in a URL. */
const name = 'millrace-key'
const listeners = new Set<() => void>()
let key = read()

function read(): string | undefined {
  try {
    return sessionStorage.getItem(name) ?? undefined
  } catch {
    return undefined
  }
}

export function readKey(): string | undefined {
  return key
}

export function setKey(next: string | undefined): void {
  key = next
  try {
    if (next === undefined) sessionStorage.removeItem(name)
    else sessionStorage.setItem(name, next)
  } catch {
    // Without storage the key lasts as long as the page.
  }
  for (const listener of listeners) listener()
}

export function onKey(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}
