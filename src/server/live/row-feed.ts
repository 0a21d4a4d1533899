/** The rows of changed runs, as frames shared by all listeners: at most four a second per run. */
import type { RunIndex, RunRow } from '../../part/log.ts'
import type { ChangesTap } from './live-source.ts'

export interface RowListener {
  onRow(run: string, frame: string, row: RunRow): void
  onEnd(): void
}

export interface RowCaller {
  runs: RunIndex
  sees(row: RunRow): boolean
  /** As the caller sees it. */
  show(row: RunRow): RunRow
}

export interface RowFeed {
  join(listener: RowListener): () => void
  /** Frames of the initial list: the newest runs and all active ones, oldest first. */
  first(): Promise<Map<string, string>>
  /** The same for one caller: `sees` says which rows, `runs` lists only those. */
  of(caller: RowCaller): RowFeed
}

const pace = 250
const firstRows = 50
/** Maximum number per status. */
const mostActive = 200

export function createRowFeed(tap: ChangesTap, runs: RunIndex, onError: (error: unknown) => void): RowFeed {
  const listeners = new Set<RowListener>()
  /** The times at which rows were sent, within the last `pace` ms. */
  const sent = new Map<string, number>()
  const changed = new Set<string>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let leave: (() => void) | undefined

  function mark(run: string): void {
    if (sent.has(run)) changed.add(run)
    else void send(run)
  }

  async function send(run: string): Promise<void> {
    sent.set(run, performance.now())
    timer ??= setTimeout(tick, pace / 2)
    try {
      const row = await runs.get(run)
      if (row === undefined) return
      const frame = toFrame(row)
      for (const { onRow } of listeners) onRow(run, frame, row)
    } catch (error) {
      onError(error)
    }
  }

  function tick(): void {
    timer = undefined
    const due = performance.now() - pace
    for (const [run, at] of sent) {
      // In the order of sending.
      if (at > due) break
      sent.delete(run)
      if (changed.delete(run)) void send(run)
    }
    if (sent.size > 0) timer ??= setTimeout(tick, pace / 2)
  }

  function stop(): void {
    clearTimeout(timer)
    timer = undefined
    leave = undefined
    sent.clear()
    changed.clear()
  }

  const feed: RowFeed = {
    join(listener) {
      listeners.add(listener)
      leave ??= tap.join({
        onChanges(changes) {
          for (const run of new Set(changes.map((change) => change.run))) mark(run)
        },
        onEnd() {
          stop()
          const left = [...listeners]
          listeners.clear()
          for (const { onEnd } of left) onEnd()
        },
      })
      return () => {
        if (!listeners.delete(listener) || listeners.size > 0) return
        leave?.()
        stop()
      }
    },
    first: () => firstFrames(runs, toFrame),
    of: (caller) => ({
      ...feed,
      join: ({ onRow, onEnd }) =>
        feed.join({
          onRow(run, _frame, row) {
            if (caller.sees(row)) onRow(run, toFrame(caller.show(row)), row)
          },
          onEnd,
        }),
      first: () => firstFrames(caller.runs, (row) => toFrame(caller.show(row))),
    }),
  }
  return feed
}

async function firstFrames(runs: RunIndex, frame: (row: RunRow) => string): Promise<Map<string, string>> {
  const lists = await Promise.all([
    runs.list({ status: 'suspended', limit: mostActive }),
    runs.list({ status: 'running', limit: mostActive }),
    runs.list({ limit: firstRows }),
  ])
  return new Map(lists.flatMap((list) => list.toReversed().map((row) => [row.id, frame(row)])))
}

function toFrame(row: RunRow): string {
  return `event: row\ndata: ${JSON.stringify(row)}\n\n`
}
