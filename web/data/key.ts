/** The server's key, for as long as the tab is open. It is sent in a header and never in a URL. */
import { useSyncExternalStore } from 'react'

const name = 'millrace-key'
const listeners = new Set<() => void>()
let key = read()
let isRefused = false

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
  isRefused = false
  try {
    if (next === undefined) sessionStorage.removeItem(name)
    else sessionStorage.setItem(name, next)
  } catch {
    // Without storage the key lasts as long as the page.
  }
  tell()
}

/** The server has refused a request that was sent with this key: the page asks for another. */
export function keyRefused(used: string | undefined): void {
  // The answer to a request from before the key was entered says nothing about the key.
  if (used !== key || isRefused) return
  isRefused = true
  tell()
}

function tell(): void {
  for (const listener of listeners) listener()
}

/** Called when the key has changed or was refused. */
export function onKey(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

export function useKeyState(): { key: string | undefined; isRefused: boolean } {
  return { key: useSyncExternalStore(onKey, readKey), isRefused: useSyncExternalStore(onKey, () => isRefused) }
}
