/**
 * Whether Redis takes writes. A connection alone says little: a Redis that reads its files, runs somebody's long script or has become a replica is
 * connected as well. So each area, a part of the keys that lie on one node, is up when a command that changes nothing was answered there.
 */
import { messageOf } from '../../part/error.ts'
import { isAway } from './away.ts'
import type { Client } from './client.ts'
import type { Partition } from './keys.ts'

export interface Area {
  /** One that does not exist. It says where the area lies. */
  key: string
  partitions: readonly Partition[]
}

export interface WatchEvents {
  /** At once, before anybody else learns that the connection has broken. None: messages may be missed. */
  down(partitions: readonly Partition[]): void
  /** They take writes again. None: messages come again, and some may have been missed. */
  up(partitions: readonly Partition[]): void
}

export interface Watch {
  /** Something has become of a connection. */
  look(): void
  /** Whether everything is up, and messages come. */
  isWhole(): boolean
  end(): void
}

/** How often to ask: while all is well, and while it is not, in ms. */
const calmly = 1000
const often = 100
/** A replica is left, because its name may stand for another server now, at most so often, in ms. */
const leaveEvery = 1000

interface State extends Area {
  /** The connection that was answered on; undefined: it is down. */
  link: unknown
  isAsked: boolean
}

/** Everything is up when it is called. `command`: what is asked, without the key. */
export function createWatch(client: Client, areas: readonly Area[], command: string, { up, down }: WatchEvents): Watch {
  const states = areas.map((area): State => ({ ...area, link: client.linkOf(area.key), isAsked: false }))
  let subscribers = client.subscribers()
  let hears = true
  let leftAt = performance.now()
  let risen: State[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let ended = false

  const isWhole = () => hears && states.every(({ link }) => link !== undefined)

  function fall(state: State): void {
    if (state.link === undefined) return
    state.link = undefined
    down(state.partitions)
  }

  /** Those of a node rise together. */
  function rise(state: State): void {
    if (risen.push(state) > 1) return
    setImmediate(() => {
      const all = risen.filter(({ link }) => link !== undefined)
      risen = []
      if (!ended && all.length > 0) up(all.flatMap(({ partitions }) => partitions))
    })
  }

  async function ask(state: State): Promise<void> {
    const link = client.linkOf(state.key)
    if (link === undefined || state.isAsked) return
    state.isAsked = true
    try {
      await client.send(state.key, [command, state.key])
    } catch (error) {
      if (isAway(error)) {
        fall(state)
        if (/^(?:READONLY|MASTERDOWN)/u.test(messageOf(error))) leave()
        return
      }
      // Refused for good is an answer: who writes is told why.
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
      // Another node may know less.
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
