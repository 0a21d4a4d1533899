/** Windows of a run's log, each read once and kept while there is room. */
import type { Entry } from '../../../../src/part/entry.ts'
import { fetchApi } from '../../../data/client.ts'

export interface Window {
  /** Entries from `after + 1` to `before - 1`. */
  after: number
  before: number
  step?: string
  types?: string
  merge?: boolean
  /** Longer strings end in `…`. */
  cut?: number
  limit?: number
}

export interface Windows {
  /** Only of entries that are stored: what they say never changes. */
  read(window: Window): Promise<readonly Entry[]>
  /** What is here already. */
  peek(window: Window): readonly Entry[] | undefined
}

/** Characters of JSON that are kept. */
const most = 24_000_000

export function createWindows(id: string): Windows {
  const kept = new Map<string, { size: number; entries: Promise<readonly Entry[]>; value?: readonly Entry[] }>()
  let size = 0

  async function load(query: string): Promise<readonly Entry[]> {
    const response = await fetchApi(`/api/runs/${encodeURIComponent(id)}/events?${query}`)
    const text = await response.text()
    const entries: Entry[] = []
    for (const line of text.split('\n')) if (line !== '') entries.push(JSON.parse(line) as Entry)
    const slot = kept.get(query)
    if (slot !== undefined) {
      slot.value = entries
      slot.size = text.length
      size += text.length
      for (const [key, old] of kept) {
        if (size <= most || key === query) break
        kept.delete(key)
        size -= old.size
      }
    }
    return entries
  }

  return {
    peek: (window) => kept.get(queryOf(window))?.value,
    read(window) {
      const query = queryOf(window)
      const slot = kept.get(query)
      if (slot !== undefined) {
        // What was asked for last goes last.
        kept.delete(query)
        kept.set(query, slot)
        return slot.entries
      }
      const entries = load(query)
      kept.set(query, { size: 0, entries })
      entries.catch(() => kept.delete(query))
      return entries
    },
  }
}

function queryOf({ after, before, step, types, merge, cut, limit }: Window): string {
  const query = new URLSearchParams({ after: String(after), before: String(before) })
  if (step !== undefined) query.set('step', step)
  if (types !== undefined) query.set('types', types)
  if (merge === true) query.set('merge', '1')
  if (cut !== undefined) query.set('cut', String(cut))
  if (limit !== undefined) query.set('limit', String(limit))
  return query.toString()
}
