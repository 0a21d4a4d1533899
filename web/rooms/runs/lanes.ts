/** Recent runs as bars on a lane for each agent. Runs at the same time stand below each other. */
import { hasEnded, type RunRow } from '../../../src/part/log.ts'
import type { Wait } from './useWaits.ts'

export interface Bar {
  run: RunRow
  /** Per cent of the window. */
  left: number
  width: number
  level: number
  /** Where it waited for somebody: per cent of the bar. */
  waits: { left: number; width: number }[]
}

export interface Lane {
  agent: string
  bars: Bar[]
  levels: number
}

/** Runs that stand below each other at most; others share the last level. */
const mostLevels = 4

/** By the name of the agent, so that lanes do not move when something happens. */
export function layLanes(
  rows: readonly RunRow[],
  from: number,
  to: number,
  waits: ReadonlyMap<string, readonly Wait[]> = new Map(),
): Lane[] {
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
          const [a, b] = [Math.max(from, run.startedAt), Math.min(end, to)]
          const place = { left: ((a - from) / span) * 100, width: ((b - a) / span) * 100 }
          return { run, level, ...place, waits: waitsIn(waits.get(run.id) ?? [], a, b) }
        })
      return { agent, bars, levels: ends.length }
    })
}

function waitsIn(waits: readonly Wait[], from: number, to: number): Bar['waits'] {
  const share = (time: number) => Math.min(1, Math.max(0, (time - from) / Math.max(1, to - from))) * 100
  return waits
    .map((wait) => ({ left: share(wait.from), width: share(wait.to ?? to) - share(wait.from) }))
    .filter(({ width }) => width > 0)
}

/** Px. `levels`: of a lane. */
export function heightOf({ levels }: Lane): number {
  return Math.max(18, levels * 10 + 4)
}

/** How many lanes fit as a whole. */
export function lanesThatFit(lanes: readonly Lane[], px: number): number {
  let left = px
  const first = lanes.findIndex((lane) => (left -= heightOf(lane)) < 0)
  return Math.max(1, first < 0 ? lanes.length : first)
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
