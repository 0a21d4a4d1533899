/** Reads the events of `GET /api/live` from chunks of text. */
import type { Entry } from '../../src/part/entry.ts'
import type { RunRow } from '../../src/part/log.ts'
import type { GoneReason, NamedThread } from './messages.ts'

export type LiveEvent =
  | { event: 'entry'; data: { run: string; entry: Entry } }
  | { event: 'row'; data: RunRow }
  | { event: 'gone'; data: { run: string; reason: GoneReason } }
  | { event: 'title'; data: NamedThread }
  | { event: 'agents' }

export interface SizedEvent {
  live: LiveEvent
  /** Characters of JSON. */
  size: number
}

const known: ReadonlySet<string> = new Set(['entry', 'row', 'gone', 'title', 'agents'])

/** The returned function takes a chunk and returns the events that it completes. */
export function createEventReader(): (chunk: string) => SizedEvent[] {
  /** An event of many megabytes comes in many chunks: each is searched once. */
  let pieces: string[] = []
  let endsInBreak = false
  return (chunk) => {
    // The two line breaks may come in two chunks.
    const isWhole = endsInBreak && chunk.startsWith('\n')
    const text = isWhole ? chunk.slice(1) : chunk
    const parts = text.split('\n\n')
    endsInBreak = text.endsWith('\n') && !text.endsWith('\n\n')
    if (isWhole) parts.unshift('')
    pieces.push(parts[0]!)
    if (parts.length === 1) return []
    parts[0] = pieces.join('')
    pieces = [parts.pop()!]
    return parts.flatMap(toEvent)
  }
}

function toEvent(text: string): SizedEvent[] {
  let event = ''
  let data = ''
  for (const line of text.split('\n')) {
    if (line.startsWith('event: ')) event = line.slice(7)
    else if (line.startsWith('data: ')) data = line.slice(6)
  }
  if (!known.has(event)) return []
  return [{ live: { event, data: JSON.parse(data) as unknown } as LiveEvent, size: data.length }]
}
