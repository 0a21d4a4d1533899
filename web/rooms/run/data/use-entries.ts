/** Entries that components show: windows of the stored log, and what has come live since. */
import { useEffect, useState } from 'react'
import type { Entry } from '../../../../src/part/entry.ts'
import type { Window, Windows } from './windows.ts'

export interface EntriesWindow {
  /** While another window is read: that of before, if it has the same `subject`. */
  entries: readonly Entry[] | undefined
  /** It is the window that was asked for. */
  isCurrent: boolean
  error: unknown
  retry(): void
}

interface EntriesState {
  subject: string
  window: string
  entries?: readonly Entry[]
  error?: unknown
}

/** `undefined` reads nothing. */
export function useWindow(windows: Windows, subject: string, window: Window | undefined): EntriesWindow {
  const [state, setState] = useState<EntriesState>()
  const [round, setRound] = useState(0)
  const asked = window === undefined ? '' : JSON.stringify(window)
  const kept = window === undefined ? undefined : windows.peek(window)
  useEffect(() => {
    if (asked === '') return
    let isLeft = false
    windows.read(JSON.parse(asked) as Window).then(
      (entries) => !isLeft && setState({ subject, window: asked, entries }),
      (error: unknown) => !isLeft && setState({ subject, window: asked, error }),
    )
    return () => {
      isLeft = true
    }
  }, [windows, subject, asked, round])
  const isCurrent = kept !== undefined || state?.window === asked
  const entries = kept ?? (state?.subject === subject ? state.entries : undefined)
  return {
    entries,
    isCurrent,
    error: isCurrent ? state?.error : undefined,
    retry: () => setRound((n) => n + 1),
  }
}

/** One entry. */
export function useEntry(windows: Windows, seq: number | undefined): Entry | undefined {
  const window = seq === undefined ? undefined : { after: seq - 1, before: seq + 1 }
  return useWindow(windows, `entry ${seq}`, window).entries?.find((entry) => entry.seq >= seq!)
}
