/** Recent runs as bars on a lane for each agent. Runs at the same time stand below each other. */
import { hasEnded, type RunRow } from '../../../src/part/log.ts'

export interface Bar {
  run: RunRow
  /** Per cent of the window. */
  left: number
  width: number
  level: number
}

export interface Lane {
  agent: string
  bars: Bar[]
  levels: number
}

/** Runs that stand below each other at most; others share the last level. */
const mostLevels = 4

/** By the name of the agent, so that lanes do not move when something happens. */
export function layLanes(rows: readonly RunRow[], from: number, to: number): Lane[] {
  const span = to - from
  const byAgent = new Map<string, RunRow[]>()
  for (const row of rows) {
    if (row.startedAt > to || endOf(row, to) < from) continue
    const runs = byAgent.get(row.agent)
    if (runs === undefined) byAgent.set(row.agent, [row])
    else runs.push(row)
  }
  return [...byAgent]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([agent, runs]) => {
      const ends: number[] = []
      const bars = runs
        .sort((a, b) => a.startedAt - b.startedAt || (a.id < b.id ? -1 : 1))
        .map((run): Bar => {
          const end = endOf(run, to)
          const free = ends.findIndex((each) => each <= run.startedAt)
          const level = free >= 0 ? free : Math.min(ends.length, mostLevels - 1)
          ends[level] = Math.max(ends[level] ?? 0, end)
          const left = Math.max(0, run.startedAt - from)
          return { run, level, left: (left / span) * 100, width: ((Math.min(end, to) - from - left) / span) * 100 }
        })
      return { agent, bars, levels: ends.length }
    })
}

function endOf(row: RunRow, now: number): number {
  return row.endedAt ?? (hasEnded(row.status) ? row.updatedAt : now)
}

/** Times to write below the lanes: whole minutes, about six. */
export function ticksOf(from: number, to: number): number[] {
  const steps = [60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000]
  const step = steps.find((each) => (to - from) / each <= 6) ?? steps.at(-1)!
  const ticks: number[] = []
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) ticks.push(at)
  return ticks
}
