/** A tab's side of the hub: remembers what it wants and how far it has come, so that it can say it again to another hub. */
import type { Entry } from '../../src/part/entry.ts'
import type { RunRow } from '../../src/part/log.ts'
import type { HubBatch, HubConnection, GoneReason, NamedThread, ToHub } from './messages.ts'

export interface Follower {
  /** Entries in order, without gaps or doubles. Deltas may be merged (`firstSeq`). */
  onEntries(entries: readonly Entry[]): void
  /** The run does not exist, or not any more; or what follows the last entry is not known: read it from the start. */
  onGone?(reason: GoneReason): void
}

type Send = (message: ToHub) => void

export interface Tab {
  /** Says everything to a hub, from now on to this one. */
  attach(send: Send): void
  receive(batch: HubBatch): void
  detach(): void
  follow(run: string, after: number, follower: Follower): () => void
  hold(run: string): () => void
  rows(onRows: (rows: readonly RunRow[]) => void): () => void
  /** Of a tab that wants rows. */
  titles(onTitle: (named: NamedThread) => void): () => void
  agents(onAgents: () => void): () => void
  setKey(key: string | undefined): void
  setCaller(caller: string): void
  retry(): void
  ping(): void
  readonly connection: HubConnection
  onConnection(listener: () => void): () => void
}

interface FollowedRun extends Follower {
  run: string
  seq: number
}

export function createTab(): Tab {
  const follows = new Map<number, FollowedRun>()
  const holds = new Map<number, string>()
  const rows = new Map<number, (rows: readonly RunRow[]) => void>()
  const titles = new Set<(named: NamedThread) => void>()
  const agents = new Set<() => void>()
  const listeners = new Set<() => void>()
  let connection: HubConnection = { state: 'connecting' }
  let key: string | undefined
  let caller: string | undefined
  let hub: Send | undefined
  let ids = 0
  const send: Send = (message) => hub?.(message)

  function attach(next: Send): void {
    hub = next
    send({ kind: 'hello', key })
    if (caller !== undefined) send({ kind: 'caller', caller })
    // New ids: what is on its way for the old ones does not count.
    const known = [...follows.values()]
    follows.clear()
    for (const each of known) {
      follows.set(++ids, each)
      send({ kind: 'follow', id: ids, run: each.run, after: each.seq })
    }
    for (const [id, run] of holds) send({ kind: 'hold', id, run })
    for (const id of rows.keys()) send({ kind: 'rows', id })
  }

  function deliver(batch: HubBatch): void {
    if (batch.connection !== undefined) {
      ;({ connection } = batch)
      for (const listener of listeners) listener()
    }
    for (const [id, entries] of batch.entries) {
      const followed = follows.get(id)
      if (followed === undefined) continue
      followed.seq = entries.at(-1)!.seq
      if (entries.at(-1)!.type === 'run-end') leave(followed)
      followed.onEntries(entries)
    }
    for (const [id, reason] of batch.gone) {
      const followed = follows.get(id)
      if (followed === undefined) continue
      follows.delete(id)
      followed.onGone?.(reason)
    }
    if (batch.rows.length > 0) for (const onRows of rows.values()) onRows(batch.rows)
    for (const named of batch.titles ?? []) for (const onTitle of titles) onTitle(named)
    if (batch.agents) for (const onAgents of agents) onAgents()
  }

  function leave(followed: FollowedRun): void {
    for (const [id, each] of follows) {
      if (each !== followed) continue
      follows.delete(id)
      send({ kind: 'leave', id })
    }
  }

  return {
    attach,
    receive(batch) {
      if (batch.forgotten) return hub && attach(hub)
      try {
        deliver(batch)
      } finally {
        send({ kind: 'ack' })
      }
    },
    detach() {
      send({ kind: 'bye' })
      hub = undefined
    },
    follow(run, after, follower) {
      const followed = { ...follower, run, seq: after }
      follows.set(++ids, followed)
      send({ kind: 'follow', id: ids, run, after })
      return () => leave(followed)
    },
    hold(run) {
      const id = ++ids
      holds.set(id, run)
      send({ kind: 'hold', id, run })
      return () => {
        if (holds.delete(id)) send({ kind: 'leave', id })
      }
    },
    rows(onRows) {
      const id = ++ids
      rows.set(id, onRows)
      send({ kind: 'rows', id })
      return () => {
        if (rows.delete(id)) send({ kind: 'leave', id })
      }
    },
    titles(onTitle) {
      titles.add(onTitle)
      return () => void titles.delete(onTitle)
    },
    agents(onAgents) {
      agents.add(onAgents)
      return () => void agents.delete(onAgents)
    },
    setKey(next) {
      key = next
      send({ kind: 'key', key })
    },
    setCaller(next) {
      caller = next
      send({ kind: 'caller', caller })
    },
    retry: () => send({ kind: 'retry' }),
    ping: () => send({ kind: 'ping' }),
    get connection() {
      return connection
    },
    onConnection(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
