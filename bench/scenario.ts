/** What all scenarios share: their rows, rounds in turn, and what comes out. */
import type { Child } from './child.ts'
import type { Target } from './load.ts'
import { startRow, type Row } from './rows.ts'
import type { Mode } from './upstream.ts'

export interface Options {
  rounds: number | undefined
  streams: number
  deltas: number
  /** Of a row in a round. */
  seconds: number
  /** How many paced streams `open` holds, in turn. */
  open: readonly number[]
  /** Profiles of the servers are written into this folder. */
  profile: string | undefined
}

export interface Bench {
  rows: readonly Row[]
  upstream: Child
  load: Child
  options: Options
  /** Progress, for a person. */
  say(line: string): void
}

export interface Column {
  key: string
  title: string
  digits: number
  /** With the ratio to the reference row beside it. */
  ratio?: boolean
}

export type Sample = Record<string, number>

export interface ResultRow {
  name: string
  title: string
  /** One a round; the table shows their medians. */
  samples: Sample[]
  /** Why there is nothing, or nothing more. */
  failed?: string
}

export interface Result {
  scenario: string
  title: string
  /** The row that ratios are of. */
  reference: string
  columns: Column[]
  rows: ResultRow[]
  notes: string[]
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/**
 * Each round measures all rows, beginning with another one each time, so that whatever the machine does meanwhile falls on
 * all alike; the first round warms up and does not count. A row that throws is told and left out of what follows.
 */
async function inRounds(
  bench: Bench,
  rows: readonly Row[],
  rounds: number,
  warmUp: boolean,
  measure: (row: Row) => Promise<Sample>,
): Promise<ResultRow[]> {
  const results = rows.map(({ name, title }): ResultRow => ({ name, title, samples: [] }))
  for (let round = warmUp ? 0 : 1; round <= rounds; round++) {
    bench.say(round === 0 ? 'warm-up' : `round ${round} of ${rounds}`)
    for (let i = 0; i < rows.length; i++) {
      const at = (i + round) % rows.length
      const result = results[at]!
      if (result.failed !== undefined) continue
      try {
        const sample = await measure(rows[at]!)
        if (round > 0) result.samples.push(sample)
      } catch (error) {
        result.failed = error instanceof Error ? error.message : String(error)
        bench.say(`${result.name} failed: ${result.failed}`)
      }
    }
  }
  return results
}

/** The same on servers that live through all rounds, so that they are warm. One whose row failed is stopped. */
export async function inRoundsOnServers(
  bench: Bench,
  rows: readonly Row[],
  rounds: number,
  measure: (server: Child, target: Target) => Promise<Sample>,
): Promise<ResultRow[]> {
  const servers = new Map<Row, Child>()
  try {
    return await inRounds(bench, rows, rounds, true, async (row) => {
      const server = servers.get(row) ?? (await startRow(row, bench.upstream.url, profiling(bench, row)))
      servers.set(row, server)
      try {
        return await measure(server, { ...row.target, url: server.url })
      } catch (error) {
        servers.delete(row)
        await bench.load.call('reset')
        await server.stop()
        throw error
      }
    })
  } finally {
    await Promise.all([...servers.values()].map((server) => server.stop()))
  }
}

/** The same on a server of its own for each measurement. */
export async function inRoundsAfresh(
  bench: Bench,
  rows: readonly Row[],
  { rounds, warmUp }: { rounds: number; warmUp: boolean },
  measure: (server: Child, target: Target) => Promise<Sample>,
): Promise<ResultRow[]> {
  return inRounds(bench, rows, rounds, warmUp, async (row) => {
    const server = await startRow(row, bench.upstream.url, profiling(bench, row))
    try {
      return await measure(server, { ...row.target, url: server.url })
    } finally {
      await bench.load.call('reset')
      await server.stop()
    }
  })
}

function profiling({ options }: Bench, row: Row): string[] {
  if (options.profile === undefined) return []
  return ['--cpu-prof', `--cpu-prof-dir=${options.profile}`, `--cpu-prof-name=${row.name}.cpuprofile`]
}

export async function setMode({ upstream }: Bench, mode: Mode): Promise<void> {
  await upstream.call('mode', mode)
}
