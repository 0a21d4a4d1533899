/** What the rows of a log that are seen say: read by windows of some rows, or from what has come live. */
import { useEffect, useState } from 'react'
import { isDelta, type Entry } from '../../../../src/part/entry.ts'
import { rowAt, summaryOf, type LogRow } from '../../../../src/fold/log-rows.ts'
import type { Window } from '../data/windows.ts'
import type { Room } from '../use-room.ts'

/** Rows of one window. */
const size = 50
const longest = 300

/** `first`, `last`: indexes of the rows that are seen. Returns what a row says, or undefined until it is read. */
export function useContent(
  { windows, store, snapshot }: Room,
  rows: readonly LogRow[],
  { first, last, types }: { first: number; last: number; types: string | undefined },
): (index: number) => string | undefined {
  const [, setRead] = useState(0)
  const live = store.live()
  const stored = Math.min(snapshot.lastSeq, live.from - 1)
  const windowOf = (index: number): Window | undefined => {
    const begin = index - (index % size)
    const from = rows[begin]!.seq
    const to = Math.min(stored, rows[Math.min(rows.length, begin + size) - 1]!.to)
    if (to < from) return undefined
    return { after: from - 1, before: to + 1, merge: true, cut: longest, ...(types !== undefined && { types }) }
  }
  const seen = new Map<string, Window>()
  for (let i = Math.max(0, first - (first % size)); i <= last && i < rows.length; i += size) {
    const window = windowOf(i)
    if (window !== undefined && windows.peek(window) === undefined) seen.set(JSON.stringify(window), window)
  }
  const missing = [...seen.keys()].join('\n')
  useEffect(() => {
    if (missing === '') return
    let isLeft = false
    // Who scrolls fast sees most rows for a moment only.
    const timer = setTimeout(() => {
      for (const window of missing.split('\n')) {
        windows.read(JSON.parse(window) as Window).then(
          () => !isLeft && setRead((n) => n + 1),
          () => undefined,
        )
      }
    }, 60)
    return () => {
      isLeft = true
      clearTimeout(timer)
    }
  }, [windows, missing])

  return (index) => {
    const row = rows[index]!
    if (row.seq >= live.from) return liveText(live.entries, row)
    const window = windowOf(index)
    const entries = window && windows.peek(window)
    return entries && textOf(entries, row)
  }
}

function fits(entry: Entry, row: LogRow): boolean {
  if (entry.type !== row.type || entry.step !== row.step) return false
  if (row.id !== undefined && isDelta(entry)) return entry.id === row.id
  return entry.seq === row.seq
}

function liveText(entries: readonly Entry[], row: LogRow): string | undefined {
  return textOf(entries.slice(rowAt(entries, row.seq - 1) + 1, rowAt(entries, row.seq - 1) + 1 + longest), row)
}

/** The first delta of a block stands apart from those that were merged. */
function textOf(entries: readonly Entry[], row: LogRow): string | undefined {
  let text: string | undefined
  for (const entry of entries) {
    if (!fits(entry, row)) continue
    if (!isDelta(entry)) return summaryOf(entry)
    if (entry.seq > row.to && (entry.firstSeq ?? entry.seq) > row.to) break
    text = (text ?? '') + entry.delta
    if (text.length > longest) break
  }
  return text
}
