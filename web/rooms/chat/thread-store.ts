/** The runs of a thread as turns: those that were, and those that are going on, from whichever tab they were started. */
import type { Entry } from '../../../src/part/entry.ts'
import type { RunRow } from '../../../src/part/log.ts'
import { api, fetchApi } from '../../data/client.ts'
import { followRows, followRun, followTitles, holdRun } from '../../data/live.ts'
import { isActive, type ChatTurn } from './turn.ts'
import { createTurnFold, turnTypes } from './turn-fold.ts'

/** Runs of which this tab is a client (see `onDisconnect`), in whatever room it is: until they end or the tab is closed. */
const held = new Map<string, () => void>()

export interface ThreadRun {
  runId: string
  startedAt: number
  previousRunId?: string | undefined
  firstTokenMs?: number | undefined
  /** Absent until its entries are here. */
  turn?: ChatTurn
}

export interface ThreadState {
  /** Oldest first. */
  runs: readonly ThreadRun[]
  hasEarlier: boolean
  isLoading: boolean
  /** What it is called. */
  title?: string | undefined
  error?: unknown
}

export interface ThreadStore {
  subscribe(listener: () => void): () => void
  read(): ThreadState
  /** Begins to read; the returned function ends it. */
  start(): () => void
  add(runId: string): void
  loadEarlier(): void
  reload(): void
}

/** Runs that are read at a time, and that come with each page. */
const atOnce = 5
const pageSize = 50

export function createThreadStore(threadId: string): ThreadStore {
  const runs = new Map<string, ThreadRun & { leave?: () => void }>()
  const waiting: string[] = []
  /** Runs that are being read or followed. */
  const followed = new Set<string>()
  const listeners = new Set<() => void>()
  let reading = 0
  let state: ThreadState = { runs: [], hasEarlier: false, isLoading: true }
  let isScheduled = false
  let leave = new AbortController()
  let next: { hasEarlier: boolean; title?: string | undefined; error?: unknown } = { hasEarlier: false }
  let isListed = false

  /** Once for each frame. A tab in the background has none. */
  function changed(): void {
    if (isScheduled) return
    isScheduled = true
    if (document.hidden) setTimeout(publish, 200)
    else requestAnimationFrame(publish)
  }

  function publish(): void {
    isScheduled = false
    if (leave.signal.aborted) return
    const list = [...runs.values()].sort((a, b) => a.startedAt - b.startedAt)
    const isLoading = next.error === undefined && (!isListed || waiting.length + reading > 0) && state.isLoading
    state = { ...next, runs: list, isLoading }
    for (const listener of listeners) listener()
  }

  async function list(before?: string): Promise<void> {
    const { signal } = leave
    const query = `limit=${pageSize}&messages=1${before === undefined ? '' : `&before=${encodeURIComponent(before)}`}`
    try {
      const found = await api<{ title?: string; runs: RunRow[] }>(
        `/api/threads/${encodeURIComponent(threadId)}?${query}`,
        { signal },
      )
      next = { hasEarlier: found.runs.length === pageSize, title: found.title }
      isListed = true
      for (const row of found.runs) note(row)
    } catch (error) {
      if (signal.aborted) return
      next = { ...next, error }
    }
    changed()
  }

  function note({ id, startedAt, previousRunId, firstTokenMs }: RunRow): void {
    const known = runs.get(id)
    if (known === undefined) runs.set(id, { runId: id, startedAt, previousRunId, firstTokenMs })
    else if (known.turn !== undefined) return
    else runs.set(id, { ...known, startedAt, previousRunId, firstTokenMs })
    if (!waiting.includes(id) && !followed.has(id)) waiting.push(id)
    pump()
  }

  function pump(): void {
    while (reading < atOnce && waiting.length > 0 && !leave.signal.aborted) {
      const id = waiting.shift()!
      reading++
      followed.add(id)
      void read(id).finally(() => {
        reading--
        pump()
        changed()
      })
    }
  }

  /** What is stored, merged, in one answer; then what happens. */
  async function read(runId: string): Promise<void> {
    const { signal } = leave
    const fold = createTurnFold()
    const take = (entries: readonly Entry[]) => {
      for (const entry of entries) fold.apply(entry)
      const run = runs.get(runId)
      const turn = fold.read()
      if (run === undefined || turn === undefined) return
      const { startedAt, previousRunId = run.previousRunId } = turn
      // Without the time in which somebody was asked, and of a fork from when it was forked: the row knows.
      const shown = run.firstTokenMs === undefined ? turn : { ...turn, firstTokenMs: run.firstTokenMs }
      runs.set(runId, { ...run, startedAt, previousRunId, turn: shown })
      changed()
    }
    try {
      const path = `/api/runs/${encodeURIComponent(runId)}/events?merge=1&cut=1000000&types=${turnTypes.join(',')}`
      const response = await fetchApi(path, { accept: 'application/x-ndjson', signal })
      const lines = (await response.text()).split('\n').filter((line) => line !== '')
      take(lines.map((line) => JSON.parse(line) as Entry))
    } catch {
      // A run that waits for its turn in the thread has no entries yet; without a connection `followRun` tries again.
    }
    const turn = fold.read()
    if (signal.aborted || (turn !== undefined && !isActive(turn))) return
    if (!held.has(runId)) held.set(runId, holdRun(runId))
    const release = () => {
      held.get(runId)?.()
      held.delete(runId)
    }
    const end = followRun(runId, turn?.lastSeq ?? 0, {
      onEntries(entries) {
        take(entries)
        if (entries.some(({ type }) => type === 'run-end')) release()
      },
      onGone() {
        release()
        gone(runId)
      },
    })
    runs.set(runId, { ...runs.get(runId)!, leave: end })
  }

  /** What is shown stays. A run that has not begun is looked for again when its row comes. */
  function gone(runId: string): void {
    if (runs.get(runId)?.turn === undefined) followed.delete(runId)
  }

  return {
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    read: () => state,
    start() {
      leave = new AbortController()
      void list()
      const leaveTitles = followTitles(({ id, title }) => {
        if (id !== threadId) return
        next = { ...next, title }
        changed()
      })
      const leaveRows = followRows((rows) => {
        for (const row of rows) if (row.threadId === threadId && runs.get(row.id)?.turn === undefined) note(row)
      })
      return () => {
        leave.abort()
        leaveRows()
        leaveTitles()
        for (const { leave: end } of runs.values()) end?.()
        runs.clear()
        waiting.length = 0
        followed.clear()
        isScheduled = false
      }
    },
    add(runId) {
      if (!runs.has(runId)) note({ id: runId, startedAt: Date.now() } as RunRow)
    },
    loadEarlier() {
      const first = state.runs[0]
      if (first !== undefined) void list(first.runId)
    },
    reload() {
      next = { ...next, hasEarlier: false, error: undefined }
      void list()
    },
  }
}
