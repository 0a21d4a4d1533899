/** Checks the log of a run that has ended against the grammar, when nothing more urgent is left to do. */
import { useEffect, useState } from 'react'
import { createGrammar } from '../../../../src/fold/grammar.ts'
import type { Entry } from '../../../../src/part/entry.ts'
import { fetchApi } from '../../../data/client.ts'
import type { Room } from '../use-room.ts'
import { readLines } from './lines.ts'

export interface GrammarFault {
  text: string
  seq: number | undefined
}

/** Longer logs are checked by `millrace verify`. */
const longest = 50_000

export function useGrammar({ id, snapshot }: Pick<Room, 'id' | 'snapshot'>): GrammarFault | undefined {
  const [fault, setFault] = useState<GrammarFault>()
  const { isLoaded, isLive, lastSeq } = snapshot
  const isDue = isLoaded && !isLive && lastSeq <= longest
  useEffect(() => {
    setFault(undefined)
    if (!isDue) return
    const leave = new AbortController()
    const timer = setTimeout(() => {
      check(id, leave.signal).then(setFault, () => undefined)
    }, 300)
    return () => {
      leave.abort()
      clearTimeout(timer)
    }
  }, [id, isDue])
  return fault
}

async function check(id: string, signal: AbortSignal): Promise<GrammarFault | undefined> {
  const grammar = createGrammar()
  // Merged and cut: ids stay whole, and texts say nothing about the order.
  const path = `/api/runs/${encodeURIComponent(id)}/events?after=0&merge=1&cut=200`
  const { body } = await fetchApi(path, { signal })
  for await (const entries of readLines<Entry>(body!)) {
    for (const entry of entries) {
      const text = grammar.check(entry)
      if (text !== undefined) return { text, seq: entry.seq }
    }
  }
  const text = grammar.end()
  return text === undefined ? undefined : { text, seq: undefined }
}
