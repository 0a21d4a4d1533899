/** The key of this tab, for as long as the tab is open, and whether the server lets the tab in. The key is sent in a header and never in a URL. */
import { useSyncExternalStore } from 'react'

const name = 'millrace-key'
const listeners = new Set<() => void>()
let key = read()
let isRefused = false
/** How often another credential has come. */
let changes = 0

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

/** Another number after each new credential. */
export function readChanges(): number {
  return changes
}

export function setKey(next: string | undefined): void {
  key = next
  isRefused = false
  changes++
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

/** The server has answered again after a refusal: somebody has signed in in another tab, whose cookie this tab has, too. */
export function keyAccepted(used: string | undefined): void {
  if (used !== key || !isRefused) return
  isRefused = false
  changes++
  tell()
}

function tell(): void {
  for (const listener of listeners) listener()
}

/** Called when the key has changed, was refused or is accepted again. */
export function onKey(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** After a change of `changes`, what was refused may be asked for again. */
export function useKeyState(): { key: string | undefined; isRefused: boolean; changes: number } {
  return {
    key: useSyncExternalStore(onKey, readKey),
    isRefused: useSyncExternalStore(onKey, () => isRefused),
    changes: useSyncExternalStore(onKey, readChanges),
  }
}
