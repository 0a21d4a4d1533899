/**
 * One connection to the server for all tabs of a browser with the same key: it gathers what they want, and hands each what it wants. It knows no part
 * of a run: tabs fold entries themselves. It uses nothing of a worker, which `hub-worker.ts` gives it.
 */
import type { RunRow } from '../../src/part/log.ts'
import { createConnection } from './connection.ts'
import type { SizedEvent } from './live-events.ts'
import type { HubBatch, HubConnection, ToHub } from './messages.ts'
import { createOutbox, type Outbox } from './outbox.ts'
import { createRunFeed, type RunFeed, type Subscription } from './run-feed.ts'
import { createWindowReader } from './read-window.ts'

export interface HubOptions {
  fetch: typeof fetch
  /** Before the paths of the server; empty in its own page. */
  base?: string
  /** Of its tabs. Absent: the browser's cookies may say who asks. */
  key?: string | undefined
}

export interface Hub {
  /** A tab has come. Returns what it calls with each of its messages. */
  connect(post: (batch: HubBatch) => void): (message: ToHub) => void
}

/** The hub of the tabs with one key. */
interface KeyHub extends Hub {
  isEmpty(): boolean
}

interface TabState {
  outbox: Outbox
  follows: Map<number, { feed: RunFeed; subscription: Subscription }>
  holds: Map<number, string>
  rows: Set<number>
  heardAt: number
}

/** The server follows so many at once. */
const mostRuns = 64
/** Rows for a tab that wants them while others have them already. */
const mostRows = 500
/** A connection that is too large harms nobody for a moment: the next room often wants the same. */
const shrinkIn = 1000
/** Tabs say something every 30 s. In the background they are slower, and a frozen one must say everything again. */
const forgetAfter = 150_000

function createKeyHub({ fetch, base = '', key }: HubOptions): KeyHub {
  const tabs = new Set<TabState>()
  const feeds = new Map<string, RunFeed>()
  const rows = new Map<string, RunRow>()
  let state: HubConnection = { state: 'connecting' }
  let caller: string | undefined
  /** What the stream was opened with and is still wanted. */
  let asked = new Set<string>()
  /** The stream has something that nobody wants. */
  let isLarge = false
  let isStarted = false
  let sweeping: ReturnType<typeof setInterval> | undefined

  const headers = (): Record<string, string> => (key === undefined ? {} : { authorization: `Bearer ${key}` })
  const readWindow = createWindowReader({ fetch, base, headers })
  const connection = createConnection({
    fetch,
    url() {
      asked = wanted()
      isLarge = false
      const runs = followed().map(({ run, seq }) => `${encodeURIComponent(run)}~${seq}`)
      const hold = [...held()].slice(-mostRuns).map(encodeURIComponent)
      const lists = `${runs.length === 0 ? '' : `&runs=${runs.join(',')}`}${hold.length === 0 ? '' : `&hold=${hold.join(',')}`}`
      return `${base}/api/live?agents=1${asked.has('rows') ? '&rows=1' : ''}${lists}`
    },
    headers,
    onEvents,
    onState(next) {
      // What happened while there was no connection was not told.
      if (next.state === 'open' && state.state !== 'open') for (const { outbox } of tabs) outbox.agents()
      state = next
      for (const { outbox } of tabs) outbox.connection(next)
    },
  })

  function followed(): RunFeed[] {
    return [...feeds.values()]
      .filter(({ hasEnded, subscriptions }) => !hasEnded && subscriptions.size > 0)
      .slice(-mostRuns)
  }

  function held(): Set<string> {
    return new Set([...tabs].flatMap(({ holds }) => [...holds.values()]))
  }

  function wanted(): Set<string> {
    const hasRows = [...tabs].some((tab) => tab.rows.size > 0)
    const runs = followed().map(({ run }) => `run ${run}`)
    return new Set([...(hasRows ? ['rows'] : []), ...runs, ...[...held()].map((run) => `hold ${run}`)])
  }

  /** Opens another stream if this one lacks something, or later if it has too much. */
  function refresh(): void {
    const next = wanted()
    for (const each of asked) if (!next.has(each)) unask(each)
    if (state.state === 'unauthorized' || !isStarted) return
    if ([...next].some((each) => !asked.has(each))) connection.open()
    else if (isLarge) connection.open(shrinkIn)
  }

  function unask(name: string): void {
    if (asked.delete(name)) isLarge = true
  }

  function onEvents(events: readonly SizedEvent[]): void {
    for (const { live, size } of events) {
      if (live.event === 'entry') {
        const { run, entry } = live.data
        feeds.get(run)?.take(entry, size)
        // The stream has no more of it.
        if (entry.type === 'run-end') asked.delete(`run ${run}`)
      } else if (live.event === 'row') {
        rows.delete(live.data.id)
        rows.set(live.data.id, live.data)
        if (rows.size > mostRows) rows.delete(rows.keys().next().value!)
        for (const tab of tabs) if (tab.rows.size > 0) tab.outbox.rows([live.data])
      } else if (live.event === 'gone') {
        const { run, reason } = live.data
        feeds.get(run)?.gone(reason)
        feeds.delete(run)
        asked.delete(`run ${run}`)
      } else if (live.event === 'title') {
        for (const tab of tabs) if (tab.rows.size > 0) tab.outbox.title(live.data)
      } else for (const { outbox } of tabs) outbox.agents()
    }
  }

  function leave(tab: TabState, id: number): void {
    tab.holds.delete(id)
    tab.rows.delete(id)
    const followed = tab.follows.get(id)
    if (followed === undefined) return
    const { feed, subscription } = followed
    tab.follows.delete(id)
    feed.remove(subscription)
    if (feed.subscriptions.size > 0 || feeds.get(feed.run) !== feed) return
    feeds.delete(feed.run)
    // Who wants it again begins elsewhere.
    unask(`run ${feed.run}`)
  }

  function leaveAll(tab: TabState): void {
    for (const id of [...tab.follows.keys(), ...tab.holds.keys(), ...tab.rows]) leave(tab, id)
  }

  function drop(tab: TabState): void {
    if (!tabs.delete(tab)) return
    leaveAll(tab)
    tab.outbox.close()
    if (tabs.size > 0) return refresh()
    clearInterval(sweeping)
    sweeping = undefined
    connection.close()
    isStarted = false
    rows.clear()
    asked = new Set()
    caller = undefined
    state = { state: 'connecting' }
  }

  function sweep(): void {
    const due = performance.now() - forgetAfter
    for (const tab of tabs) if (tab.heardAt < due) drop(tab)
  }

  function receive(tab: TabState, message: ToHub): void {
    switch (message.kind) {
      case 'hello':
        leaveAll(tab)
        // Another cookie may have come.
        if (!isStarted || state.state === 'unauthorized') connection.open()
        isStarted = true
        return
      case 'key':
        if (state.state === 'unauthorized') connection.open()
        return
      case 'caller':
        if (caller !== undefined && caller !== message.caller) {
          rows.clear()
          connection.open()
        }
        caller = message.caller
        return
      case 'follow': {
        const { id, run, after } = message
        const feed = feeds.get(run) ?? createRunFeed(run, after, readWindow)
        feeds.set(run, feed)
        tab.follows.set(id, { feed, subscription: feed.add(id, tab.outbox, after) })
        return refresh()
      }
      case 'hold':
        tab.holds.set(message.id, message.run)
        return refresh()
      case 'rows':
        tab.rows.add(message.id)
        tab.outbox.rows(rows.values())
        return refresh()
      case 'leave':
        leave(tab, message.id)
        return refresh()
      case 'ack':
        return tab.outbox.acknowledged()
      case 'retry':
        if (state.state === 'offline') connection.open()
        return
      case 'bye':
        return drop(tab)
      default:
    }
  }

  function add(post: (batch: HubBatch) => void): TabState {
    const tab: TabState = {
      outbox: createOutbox(post),
      follows: new Map(),
      holds: new Map(),
      rows: new Set(),
      heardAt: performance.now(),
    }
    tabs.add(tab)
    tab.outbox.connection(state)
    sweeping ??= setInterval(sweep, forgetAfter / 5)
    return tab
  }

  return {
    isEmpty: () => tabs.size === 0,
    connect(post) {
      let tab = add(post)
      return (message) => {
        if (tabs.has(tab)) {
          tab.heardAt = performance.now()
          receive(tab, message)
        } else if (message.kind !== 'bye') {
          tab = add(post)
          post({ entries: [], gone: [], rows: [], forgotten: true })
        }
      }
    },
  }
}

/** A hub for each key: tabs of one browser may be signed in as different people, and none gets the rows of another. */
export function createHub(options: Omit<HubOptions, 'key'>): Hub {
  const hubs = new Map<string | undefined, KeyHub>()

  function hubOf(key: string | undefined): KeyHub {
    const hub = hubs.get(key) ?? createKeyHub({ ...options, key })
    hubs.set(key, hub)
    return hub
  }

  return {
    connect(post) {
      let current: { key: string | undefined; send: (message: ToHub) => void } | undefined

      function leave(): void {
        if (current === undefined) return
        const { key, send } = current
        current = undefined
        send({ kind: 'bye' })
        // A key that no tab has is not kept.
        if (hubs.get(key)?.isEmpty() === true) hubs.delete(key)
      }

      return (message) => {
        if (message.kind === 'bye' || ('key' in message && message.key !== current?.key)) leave()
        if (message.kind === 'bye') return
        if (message.kind === 'hello') current ??= { key: message.key, send: hubOf(message.key).connect(post) }
        // Its hello says to which hub it belongs, and then it says again what it wants.
        if (current === undefined) post({ entries: [], gone: [], rows: [], forgotten: true })
        else current.send(message)
      }
    },
  }
}
