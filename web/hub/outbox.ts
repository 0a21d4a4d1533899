/**
 * What the hub has for one tab: sent as one message, at most every 16 ms, and the next one only when the tab has handled the last. A
 * tab that is slow has no room: what it misses is read again from the log.
 */
import type { Entry } from '../../src/part/entry.ts'
import type { RunRow } from '../../src/part/log.ts'
import type { HubBatch, HubConnection, GoneReason, NamedThread } from './messages.ts'

/** Most characters of entries that wait. */
const most = 8 * 1024 * 1024
const pace = 16

export interface Outbox {
  readonly hasRoom: boolean
  /** Resolves when nothing waits for the tab. */
  room(): Promise<void>
  connection(connection: HubConnection): void
  entries(id: number, entries: readonly Entry[], size: number): void
  gone(id: number, reason: GoneReason): void
  rows(rows: Iterable<RunRow>): void
  title(named: NamedThread): void
  agents(): void
  acknowledged(): void
  close(): void
}

export function createOutbox(post: (batch: HubBatch) => void): Outbox {
  let entries = new Map<number, Entry[]>()
  let rows = new Map<string, RunRow>()
  let rest: Pick<HubBatch, 'connection' | 'gone' | 'titles' | 'agents'> = { gone: [] }
  let size = 0
  let isEmpty = true
  let waitsForTab = false
  let isClosed = false
  let lastAt = -Infinity
  let timer: ReturnType<typeof setTimeout> | undefined
  let roomy: PromiseWithResolvers<void> | undefined

  function changed(): void {
    isEmpty = false
    if (waitsForTab || timer !== undefined || isClosed) return
    const wait = lastAt + pace - performance.now()
    // In a task of its own: what comes together is sent together.
    timer = setTimeout(send, Math.max(0, wait))
  }

  function send(): void {
    timer = undefined
    const batch: HubBatch = { ...rest, entries: [...entries], rows: [...rows.values()] }
    entries = new Map()
    rows = new Map()
    rest = { gone: [] }
    size = 0
    isEmpty = true
    waitsForTab = true
    lastAt = performance.now()
    post(batch)
  }

  return {
    get hasRoom() {
      return size < most
    },
    async room() {
      if (isEmpty && !waitsForTab) return
      roomy ??= Promise.withResolvers()
      await roomy.promise
    },
    connection(connection) {
      rest.connection = connection
      changed()
    },
    entries(id, added, length) {
      const list = entries.get(id)
      if (list === undefined) entries.set(id, [...added])
      else for (const entry of added) list.push(entry)
      size += length
      changed()
    },
    gone(id, reason) {
      rest.gone.push([id, reason])
      changed()
    },
    rows(added) {
      for (const row of added) rows.set(row.id, row)
      if (rows.size > 0) changed()
    },
    title(named) {
      rest.titles = [...(rest.titles ?? []).filter(({ id }) => id !== named.id), named]
      changed()
    },
    agents() {
      rest.agents = true
      changed()
    },
    acknowledged() {
      waitsForTab = false
      if (!isEmpty) return changed()
      roomy?.resolve()
      roomy = undefined
    },
    close() {
      isClosed = true
      clearTimeout(timer)
      roomy?.resolve()
    },
  }
}
