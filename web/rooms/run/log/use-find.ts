/** Finds entries by what they say: reads the log once, merged and shortened, and keeps only what was found. */
import { useEffect, useState } from 'react'
import type { Entry } from '../../../../src/part/entry.ts'
import { fetchApi } from '../../../data/client.ts'
import { readLines } from '../data/lines.ts'

export interface Found {
  /** Undefined: nothing is looked for. */
  entries: readonly Entry[] | undefined
  isLooking: boolean
  error: unknown
}

const most = 5000
const nothing: Found = { entries: undefined, isLooking: false, error: undefined }

/** `until`: the last entry to look at. */
export function useFind(id: string, words: string | undefined, until: number): Found {
  const [found, setFound] = useState(nothing)
  useEffect(() => {
    if (words === undefined || words.trim() === '') return setFound(nothing)
    const leave = new AbortController()
    setFound((before) => ({ ...before, isLooking: true }))
    const timer = setTimeout(() => {
      find({ id, words, until, signal: leave.signal, tell: setFound }).catch((error: unknown) => {
        if (!leave.signal.aborted) setFound({ entries: [], isLooking: false, error })
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
  tell: (found: Found) => void
}

async function find({ id, words, until, signal, tell }: Search): Promise<void> {
  const wanted = words.toLowerCase().split(/\s+/u).filter(Boolean)
  const path = `/api/runs/${encodeURIComponent(id)}/events?after=0&before=${until + 1}&merge=1&cut=4000`
  const { body } = await fetchApi(path, { signal })
  const entries: Entry[] = []
  for await (const lines of readLines<Entry>(body!)) {
    for (const entry of lines) {
      const text = JSON.stringify(entry).toLowerCase()
      if (wanted.every((word) => text.includes(word))) entries.push(entry)
    }
    if (signal.aborted) return
    if (entries.length >= most) break
    tell({ entries: [...entries], isLooking: true, error: undefined })
  }
  tell({ entries, isLooking: false, error: undefined })
}
