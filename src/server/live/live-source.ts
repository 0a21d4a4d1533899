/** One live connection: rows, runs and agents in one stream of events. Its buffers are bounded, however slowly it is read. */
import { fromPromises, type BodySource } from '../../delivery/streamed-body.ts'
import { watchSilence } from '../http/sse-response.ts'
import type { RowFeed } from './row-feed.ts'
import type { RunCursor } from './run-cursor.ts'
import type { Change, Log } from '../../part/log.ts'

export interface LiveOptions {
  tap: ChangesTap
  /** Absent: rows are not wanted. */
  rows: RowFeed | undefined
  /** Calls back after a reload of the agents. Absent: not wanted. */
  onAgents: ((listener: () => void) => () => void) | undefined
  /** Calls back after a conversation was named. Absent: not wanted. */
  onRename: ((tell: (named: { id: string }) => void) => () => void) | undefined
  /** Opens the cursors of the runs. */
  open(live: LiveHandle): RunCursor[]
  keepAliveMs: number
  onError: (error: unknown) => void
  /** Called once, when the client has left or the stream ends. */
  onClose(): void
}

/** The events that cursors report to their connection. */
export interface LiveHandle {
  ready(): void
  gone(run: string, reason: string): void
  end(error?: unknown): void
}

/** Maximum number of buffered rows. Beyond it, the client gets the beginning of the list again instead. */
const mostRows = 1000
/** A piece is sent when it has this many characters. */
const pieceLength = 256 * 1024
const keepAlive = ': keep-alive\n\n'

export function createLiveSource(options: LiveOptions): BodySource {
  const { rows, onError } = options
  const waiting = new Map<string, string>()
  let other = keepAlive
  let isListWanted = rows !== undefined
  let isClosed = false
  /** The next cursor in turn: a busy run must not delay others. */
  let turn = 0
  let asked: PromiseWithResolvers<string | undefined> | undefined

  function settle(): void {
    if (asked === undefined) return
    const { resolve } = asked
    const text = isClosed ? undefined : collect()
    if (text === '') return
    asked = undefined
    silence.wrote()
    resolve(text)
  }

  function collect(): string {
    let text = other
    other = ''
    for (const [run, frame] of waiting) {
      text += frame
      waiting.delete(run)
    }
    for (let i = 0; i < cursors.length && text.length < pieceLength; i++)
      text += cursors[turn++ % cursors.length]!.take()
    return text
  }

  /** Only the latest row of a run counts. */
  function onRow(run: string, frame: string): void {
    waiting.set(run, frame)
    if (waiting.size > mostRows) {
      waiting.clear()
      isListWanted = true
    }
    settle()
  }

  async function list(): Promise<void> {
    isListWanted = false
    try {
      for (const [run, frame] of await rows!.first()) if (!waiting.has(run)) waiting.set(run, frame)
      settle()
    } catch (error) {
      end(error)
    }
  }

  function end(error?: unknown): void {
    if (isClosed) return
    isClosed = true
    if (error !== undefined) onError(error)
    silence.stop()
    for (const leave of leaves) leave()
    for (const cursor of cursors) cursor.close()
    options.onClose()
    settle()
  }

  const silence = watchSilence(options.keepAliveMs, () => source.sendKeepAlive?.(keepAlive))
  const cursors = options.open({
    ready: settle,
    gone(run, reason) {
      other += `event: gone\ndata: ${JSON.stringify({ run, reason })}\n\n`
      settle()
    },
    end,
  })
  const leaves = [
    // A connection without rows must also learn that the store is closed.
    rows === undefined
      ? options.tap.join({ onChanges: () => undefined, onEnd: () => end() })
      : rows.join({ onRow, onEnd: () => end() }),
    options.onAgents?.(() => {
      if (!other.includes('event: agents')) other += 'event: agents\ndata: {}\n\n'
      settle()
    }),
    // Only the latest title of a thread counts.
    options.onRename?.((named) => onRow(`title ${named.id}`, `event: title\ndata: ${JSON.stringify(named)}\n\n`)),
  ].filter((leave) => leave !== undefined)

  const source: BodySource = {
    next: fromPromises(() => {
      asked = Promise.withResolvers()
      const { promise } = asked
      if (isListWanted && !isClosed) void list()
      settle()
      if (asked !== undefined) for (const cursor of cursors) cursor.ask()
      return promise
    }),
    cancel: () => end(),
  }
  return source
}

/** One cursor into the changes of all runs, shared by the monitors of this process. It is open while it has listeners. */
export interface TapListener {
  onChanges(changes: readonly Change[]): void
  /** The store was closed or has failed: no more changes come. */
  onEnd(): void
}

export interface ChangesTap {
  /** Subscribes to later changes. Returns a function that unsubscribes. */
  join(listener: TapListener): () => void
}

export function createChangesTap(log: Log, onError: (error: unknown) => void): ChangesTap {
  const listeners = new Set<TapListener>()
  let leave: AbortController | undefined

  async function pump({ signal }: AbortController): Promise<void> {
    try {
      for await (const changes of log.changes({ after: await log.position(), signal })) {
        if (signal.aborted) return
        for (const listener of listeners) listener.onChanges(changes)
      }
    } catch (error) {
      if (!signal.aborted) onError(error)
    }
    if (signal.aborted) return
    leave = undefined
    const left = [...listeners]
    listeners.clear()
    for (const { onEnd } of left) onEnd()
  }

  return {
    join(listener) {
      listeners.add(listener)
      if (leave === undefined) void pump((leave = new AbortController()))
      return () => {
        listeners.delete(listener)
        if (listeners.size > 0) return
        leave?.abort()
        leave = undefined
      }
    },
  }
}
