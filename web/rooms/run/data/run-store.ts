/** One run as its room holds it: its outline, loaded once and then live, and the entries that have come since. */
import { createOutline, type Outline } from '../../../../src/fold/outline.ts'
import { keyOf } from '../../../../src/fold/merge-outline.ts'
import type { OutlineItem, OutlineMore } from '../../../../src/fold/outline-item.ts'
import type { Entry } from '../../../../src/part/entry.ts'
import { fetchApi } from '../../../data/client.ts'
import { followRun } from '../../../data/live.ts'
import { readLines } from './lines.ts'

export interface RunSnapshot {
  /**
   * Merged. A new list when an item is new, or a step has got further. Blocks and marks that only grow stay the same objects in the same
   * list: `version` tells.
   */
  items: readonly OutlineItem[]
  version: number
  lastSeq: number
  /** All that was stored when the room was opened is here. */
  isLoaded: boolean
  /** The run had not ended when the last entry came. */
  isLive: boolean
  /** It has been live since the room was opened. */
  wasLive: boolean
  isGone: boolean
  error: unknown
  /** The time of the last entry that came live, by the server's clock, and when it came by `performance.now()`. */
  heard: { at: number; seen: number } | undefined
}

export interface RunStore {
  subscribe(listener: () => void): () => void
  snapshot(): RunSnapshot
  /** Entries that came live, in order; `from` is the `seq` of the first one that is kept. */
  live(): { from: number; entries: readonly Entry[] }
  /** Loads it, and follows it until the returned function is called. */
  open(): () => void
}

/** Entries that are kept of what came live: what was shown of them before is read again. */
const mostLive = 50_000

/** The first page has what a screen shows of a run of any length. The rest comes after it, while it is looked at. */
const firstItems = 1000

export function createRunStore(id: string): RunStore {
  const listeners = new Set<() => void>()
  let snapshot: RunSnapshot = start()
  let items: OutlineItem[] = []
  let places = new Map<number, number>()
  let entries: Entry[] = []
  let from = 1
  let isChanged = true
  let due: ReturnType<typeof setTimeout> | undefined

  function start(): RunSnapshot {
    const nothing = { items: [], version: 0, lastSeq: 0, error: undefined, heard: undefined }
    return { ...nothing, isLoaded: false, isLive: false, wasLive: false, isGone: false }
  }

  function put(changed: Iterable<OutlineItem>): void {
    let isSorted = true
    for (const item of changed) {
      const key = keyOf(item)
      const place = places.get(key)
      const known = place === undefined ? undefined : items[place]!
      if (known !== undefined && item.k !== 'step' && !hasSettled(known, item)) {
        Object.assign(known, item)
        continue
      }
      isChanged = true
      if (place !== undefined) {
        items[place] = item
        continue
      }
      const last = items.at(-1)
      if (last !== undefined && keyOf(last) > key) isSorted = false
      places.set(key, items.push(item) - 1)
    }
    if (isSorted) return
    items.sort((a, b) => keyOf(a) - keyOf(b))
    places = new Map(items.map((item, i) => [keyOf(item), i]))
  }

  function publish(changes: Partial<RunSnapshot>): void {
    clearTimeout(due)
    due = undefined
    const shown = isChanged ? [...items] : snapshot.items
    isChanged = false
    snapshot = { ...snapshot, ...changes, items: shown, version: snapshot.version + 1 }
    for (const listener of listeners) listener()
  }

  /** One change per frame; what is large is drawn less often. */
  function publishSoon(changes: () => Partial<RunSnapshot>): void {
    const pause = !snapshot.isLoaded && snapshot.items.length > 0 ? 250 : items.length > 4000 ? 120 : 33
    due ??= setTimeout(() => publish(changes()), pause)
  }

  async function load(signal: AbortSignal): Promise<Outline> {
    const first = await read(`?limit=${firstItems}`, signal)
    if (first.next !== undefined) {
      publish({})
      await read(`?after=${first.next}`, signal)
    }
    // What is open has lasted until now, although nothing is heard of it.
    if (!Number.isNaN(first.asked) && !isEnded(items)) publish({ heard: { at: first.asked, seen: performance.now() } })
    return createOutline(items)
  }

  /** Returns where the next page begins, if there is one, and when it was asked for by the server's clock. */
  async function read(query: string, signal: AbortSignal): Promise<{ next: number | undefined; asked: number }> {
    const { body, headers } = await fetchApi(`/api/runs/${encodeURIComponent(id)}/outline${query}`, { signal })
    let next: number | undefined
    for await (const lines of readLines<OutlineItem | OutlineMore>(body!)) {
      put(lines.filter((line) => line.k !== 'more'))
      next = lines.find((line) => line.k === 'more')?.after
      publishSoon(() => ({}))
    }
    return { next, asked: Date.parse(headers.get('date') ?? '') }
  }

  function follow(outline: Outline): () => void {
    let heard: RunSnapshot['heard']
    const news = (): Partial<RunSnapshot> => {
      put(outline.take())
      return { lastSeq: outline.lastSeq, heard, isLive: !isEnded(items) }
    }
    outline.take()
    return followRun(id, outline.lastSeq, {
      onEntries(given) {
        for (const entry of given) outline.apply(entry)
        entries.push(...given)
        if (entries.length > mostLive) {
          entries = entries.slice(mostLive / 2)
          from = entries[0]!.firstSeq ?? entries[0]!.seq
        }
        heard = { at: given.at(-1)?.timestamp ?? Date.now(), seen: performance.now() }
        publishSoon(news)
      },
      onGone: () => publish({ isGone: true, isLive: false }),
    })
  }

  return {
    snapshot: () => snapshot,
    live: () => ({ from, entries }),
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    open() {
      const leaving = new AbortController()
      let leave: (() => void) | undefined
      items = []
      entries = []
      places = new Map()
      isChanged = true
      publish(start())
      load(leaving.signal).then(
        (outline) => {
          if (leaving.signal.aborted) return
          const isLive = !isEnded(items)
          from = outline.lastSeq + 1
          publish({ lastSeq: outline.lastSeq, isLoaded: true, isLive, wasLive: isLive })
          if (isLive) leave = follow(outline)
        },
        (error: unknown) => !leaving.signal.aborted && publish({ error }),
      )
      return () => {
        leaving.abort()
        leave?.()
        clearTimeout(due)
        due = undefined
      }
    },
  }
}

/** Whether more about it has changed than how much of it there is. */
function hasSettled(known: OutlineItem, item: OutlineItem): boolean {
  if (known.superseded !== item.superseded) return true
  return known.k === 'block' && item.k === 'block' && (known.end !== item.end || known.first !== item.first)
}

function isEnded(items: readonly OutlineItem[]): boolean {
  return items.findLast((item) => item.k === 'mark')?.type === 'run-end'
}
