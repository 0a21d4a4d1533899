/**
 * What happens on the server, as it happens: entries of runs, rows of the list of runs, the agents. All tabs share one connection, which
 * a shared worker has; where there is none, each tab has a worker, and without workers the page does it itself.
 */
// oxlint-disable-next-line import/default -- Vite makes the address of the worker's script.
import hubUrl from '../hub/hub-worker.ts?worker&url'
import { createHub } from '../hub/hub.ts'
import type { HubBatch, NamedThread, ToHub } from '../hub/messages.ts'
import { createTab, type Follower } from '../hub/tab.ts'
import type { RunRow } from '../../src/part/log.ts'
import { workerUrl } from '../trusted.ts'
import { onKey, readChanges, readKey } from './key.ts'

export type { HubConnection } from '../hub/messages.ts'
export type { Follower } from '../hub/tab.ts'

const pingEvery = 30_000
const tab = createTab()
/** How to reach a hub. When one fails, the next is taken. */
const ways = [inSharedWorker, inWorker, inPage]
let way = 0
let isOpen = false
let isAttached = false

/** The first one who wants something opens it. */
function open(): typeof tab {
  if (!isOpen) {
    isOpen = true
    tab.setKey(readKey())
    let changes = readChanges()
    onKey(() => {
      if (changes !== readChanges()) tab.setKey(readKey())
      changes = readChanges()
    })
    setInterval(tab.ping, pingEvery)
    addEventListener('online', tab.retry)
    addEventListener('pagehide', () => {
      tab.detach()
      isAttached = false
    })
    // A page that comes back from the browser's cache.
    addEventListener('pageshow', ({ persisted }) => void (persisted && open()))
  }
  if (!isAttached) {
    isAttached = true
    attach()
  }
  return tab
}

function attach(): void {
  try {
    tab.attach(ways[way]!())
  } catch {
    way++
    attach()
  }
}

function failed(): void {
  way++
  attach()
}

function inSharedWorker(): (message: ToHub) => void {
  const worker = new SharedWorker(workerUrl(hubUrl), { type: 'module', name: 'millrace' })
  worker.addEventListener('error', failed)
  const { port } = worker
  port.addEventListener('message', ({ data }: MessageEvent<HubBatch>) => tab.receive(data))
  port.start()
  return (message) => port.postMessage(message)
}

function inWorker(): (message: ToHub) => void {
  const worker = new Worker(workerUrl(hubUrl), { type: 'module' })
  worker.addEventListener('error', failed)
  worker.addEventListener('message', ({ data }: MessageEvent<HubBatch>) => tab.receive(data))
  return (message) => worker.postMessage(message)
}

function inPage(): (message: ToHub) => void {
  return createHub({ fetch: globalThis.fetch.bind(globalThis) }).connect((batch) => tab.receive(batch))
}

/** Follows a run from after this `seq` until it ends or the returned function is called. */
export function followRun(runId: string, after: number, follower: Follower): () => void {
  return open().follow(runId, after, follower)
}

/** This tab counts as a reader of the run (see `onDisconnect`) until the returned function is called or the tab is closed. */
export function holdRun(runId: string): () => void {
  return open().hold(runId)
}

/** Rows of runs: the newest and the active ones first, then those that change. */
export function followRows(onRows: (rows: readonly RunRow[]) => void): () => void {
  return open().rows(onRows)
}

/** Conversations that somebody names, for who follows rows too. */
export function followTitles(onTitle: (named: NamedThread) => void): () => void {
  return open().titles(onTitle)
}

/** Called when agents were loaded again. */
export function followAgents(onAgents: () => void): () => void {
  return open().agents(onAgents)
}

export function readConnection(): ReturnType<typeof createTab>['connection'] {
  return tab.connection
}

export function onConnection(listener: () => void): () => void {
  return open().onConnection(listener)
}

/** Who is signed in here: a stream that was opened as somebody else is opened again. */
export function nameCaller(caller: string): void {
  open().setCaller(caller)
}

/** Connects now instead of at `retryAt`. */
export function retryConnection(): void {
  open().retry()
}
