/**
 * Watches whether Redis accepts writes. A connection alone is not enough: a Redis that loads its files, runs a long script or has become a replica
 * is connected as well. So each area, a part of the keys on one node, is up after it has replied to a command that changes nothing.
 */
import { messageOf } from '../../part/error.ts'
import { isTransientError } from './transient-error.ts'
import type { Client } from './client.ts'
import type { Partition } from './keys.ts'

export interface Area {
  /** A key that does not exist. It determines the area's node. */
  key: string
  partitions: readonly Partition[]
}

export interface WatchEvents {
  /** Called first, before others learn that the connection has broken. Empty: messages may be missed. */
  down(partitions: readonly Partition[]): void
  /** Called when partitions accept writes again. Empty: messages are received again, and some may have been missed. */
  up(partitions: readonly Partition[]): void
}

export interface Watch {
  /** Call this when the state of a connection has changed. */
  look(): void
  /** Whether everything is up, and messages are received. */
  isWhole(): boolean
  end(): void
}

/** Polling intervals while all areas are up, and while not, in ms. */
const calmly = 1000
const often = 100
/** Minimum time between two reconnects from a replica, whose name may refer to another server now, in ms. */
const leaveEvery = 1000

interface LinkState extends Area {
  /** The connection that replied; undefined: the area is down. */
  link: unknown
  isAsked: boolean
}

/** All areas must be up at the call. `command`: the command for polling, without the key. */
export function createWatch(client: Client, areas: readonly Area[], command: string, { up, down }: WatchEvents): Watch {
  const states = areas.map((area): LinkState => ({ ...area, link: client.linkOf(area.key), isAsked: false }))
  let subscribers = client.subscribers()
  let hears = true
  let leftAt = performance.now()
  let risen: LinkState[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let ended = false

  const isWhole = () => hears && states.every(({ link }) => link !== undefined)

  function fall(state: LinkState): void {
    if (state.link === undefined) return
    state.link = undefined
    down(state.partitions)
  }

  /** Areas of a node come up together. */
  function rise(state: LinkState): void {
    if (risen.push(state) > 1) return
    setImmediate(() => {
      const all = risen.filter(({ link }) => link !== undefined)
      risen = []
      if (!ended && all.length > 0) up(all.flatMap(({ partitions }) => partitions))
    })
  }

  async function ask(state: LinkState): Promise<void> {
    const link = client.linkOf(state.key)
    if (link === undefined || state.isAsked) return
    state.isAsked = true
    try {
      await client.send(state.key, [command, state.key])
    } catch (error) {
      if (isTransientError(error)) {
        fall(state)
        if (/^(?:READONLY|MASTERDOWN)/u.test(messageOf(error))) leave()
        return
      }
      // A permanent refusal is a reply: writers get the reason.
    } finally {
      state.isAsked = false
    }
    if (ended || state.link !== undefined || client.linkOf(state.key) !== link) return
    state.link = link
    rise(state)
  }

  function leave(): void {
    if (performance.now() - leftAt < leaveEvery) return
    leftAt = performance.now()
    client.reconnect()
  }

  function listen(): void {
    const now = client.subscribers()
    const all = now.every(({ isReady }) => isReady)
    const isOther = now.length !== subscribers.length || now.some((each, i) => each !== subscribers[i])
    if (!all && hears) {
      hears = false
      down([])
    } else if (all && (!hears || isOther)) {
      hears = true
      up([])
    }
    if (all) subscribers = now
  }

  function look(): void {
    if (ended) return
    for (const state of states) {
      // Another node may have older data.
      if (client.linkOf(state.key) !== state.link) fall(state)
      if (state.link === undefined) void ask(state)
    }
    listen()
    if (!isWhole()) schedule(often)
  }

  function schedule(ms: number): void {
    clearTimeout(timer)
    if (ended) return
    timer = setTimeout(() => {
      for (const state of states) void ask(state)
      schedule(calmly)
      look()
    }, ms)
    timer.unref()
  }

  schedule(calmly)
  return {
    look,
    isWhole,
    end() {
      ended = true
      clearTimeout(timer)
    },
  }
}
