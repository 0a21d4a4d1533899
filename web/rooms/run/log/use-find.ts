/** Finds entries by what they say: reads the log once, merged, and keeps only what was found. */
import { useEffect, useState } from 'react'
import type { Entry } from '../../../../src/part/entry.ts'
import { fetchApi } from '../../../data/client.ts'
import { readLines } from '../data/lines.ts'
import { createFinder, type FoundEntry } from './find.ts'

export interface FindResult {
  /** Undefined: nothing is looked for. */
  entries: readonly FoundEntry[] | undefined
  isLooking: boolean
  /** The search ended at this many. */
  isCut: boolean
  error: unknown
}

export const mostFound = 5000
const nothing: FindResult = { entries: undefined, isLooking: false, isCut: false, error: undefined }

/** `until`: the last entry to look at. */
export function useFind(id: string, words: string | undefined, until: number): FindResult {
  const [found, setFound] = useState(nothing)
  useEffect(() => {
    if (words === undefined || words.trim() === '') return setFound(nothing)
    const leave = new AbortController()
    setFound((before) => ({ ...before, isLooking: true }))
    const timer = setTimeout(() => {
      find({ id, words, until, signal: leave.signal, tell: setFound }).catch((error: unknown) => {
        if (!leave.signal.aborted) setFound({ ...nothing, entries: [], error })
      })
    }, 150)
    return () => {
      leave.abort()
      clearTimeout(timer)
    }
  }, [id, words, until])
  return found
}

interface Search {
  id: string
  words: string
  until: number
  signal: AbortSignal
  tell: (found: FindResult) => void
}

async function find({ id, words, until, signal, tell }: Search): Promise<void> {
  const look = createFinder(words)
  const path = `/api/runs/${encodeURIComponent(id)}/events?after=0&before=${until + 1}&merge=1`
  const { body } = await fetchApi(path, { signal })
  const entries: FoundEntry[] = []
  for await (const lines of readLines<Entry>(body!)) {
    for (const entry of lines) {
      const found = look(entry)
      if (found !== undefined) entries.push(found)
      if (entries.length > mostFound) break
    }
    if (signal.aborted) return
    if (entries.length > mostFound) break
    tell({ ...nothing, entries: [...entries], isLooking: true })
  }
  tell({ ...nothing, entries: entries.slice(0, mostFound), isCut: entries.length > mostFound })
}
