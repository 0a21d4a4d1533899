/** Shared by all scenarios: options, rounds and results. */
import type { Child } from './child.ts'
import type { Target } from './load.ts'
import { startRow, type Row } from './rows.ts'
import type { Mode } from './upstream.ts'

export interface Options {
  /** Where kept stores are. */
  folder: string
  /** The folder of another checkout. */
  before: string | undefined
  rounds: number | undefined
  streams: number
  deltas: number
  /** Duration of a row in each round. */
  seconds: number
  /** Numbers of streams that `open` measures. */
  open: readonly number[]
  /** Number of streams that `paced` measures. */
  paced: number
  /** Deltas a second of each of its streams. */
  rate: number
  /** What `in-process` measures; default: everything. */
  subjects?: readonly string[] | undefined
  /** Seconds that `in-process` warms up each. */
  warm: number
  /** Requests to each server before `first-delta` measures; default: the scenario's own. */
  requests: number | undefined
  /** Folder for CPU profiles of the servers. */
  profile: string | undefined
  /** The row that ratios refer to; default: the scenario's own. */
  reference?: string | undefined
  /** Do not repeat measurements when the machine's speed changes. */
  quick: boolean
}

export interface Bench {
  rows: readonly Row[]
  upstream: Child
  load: Child
  /** Measures the current speed of the server's core. */
  spinner: Child
  options: Options
  /** Waits until these servers have done what they put off. */
  rest(servers: readonly Child[]): Promise<void>
  /** Prints progress. */
  say(line: string): void
}

export interface Column {
  key: string
  title: string
  digits: number
  /** Also show the ratio to the reference row. */
  ratio?: boolean
}

export type Sample = Record<string, number>

export interface ResultRow {
  name: string
  title: string
  /** One per round; the table shows their medians. */
  samples: Sample[]
  /** The reference row's sample for each. Default: its sample of the same round. The table shows medians of the ratios. */
  beside?: Sample[]
  /** The error that ended this row's measurements. */
  failed?: string
}

export interface Result {
  scenario: string
  title: string
  /** The row that ratios refer to. */
  reference: string
  columns: Column[]
  rows: ResultRow[]
  notes: string[]
}

/**
 * Each round measures all rows, starting with a different one each time, so that other load on the machine affects all rows
 * equally. The warm-up round does not count. A row that throws is reported and skipped from then on.
 */
async function inRounds(
  bench: Bench,
  rows: readonly Row[],
  { rounds, warmUp }: { rounds: number; warmUp: boolean },
  measure: (row: Row, result: ResultRow, round: number) => Promise<void>,
): Promise<ResultRow[]> {
  const results = rows.map(({ name, title }): ResultRow => ({ name, title, samples: [] }))
  for (let round = warmUp ? 0 : 1; round <= rounds; round++) {
    bench.say(round === 0 ? 'warm-up' : `round ${round} of ${rounds}`)
    for (let i = 0; i < rows.length; i++) {
      const at = (i + round) % rows.length
      const result = results[at]!
      if (result.failed !== undefined) continue
      try {
        await measure(rows[at]!, result, round)
      } catch (error) {
        result.failed = error instanceof Error ? error.message : String(error)
        bench.say(`${result.name} failed: ${result.failed}`)
      }
    }
  }
  return results
}

type Measure = (server: Child, target: Target, row: Row) => Promise<Sample>

/** Starts a new server for each measurement. */
export async function inRoundsAfresh(
  bench: Bench,
  rows: readonly Row[],
  times: { rounds: number; warmUp: boolean },
  measure: Measure,
): Promise<ResultRow[]> {
  return inRounds(bench, rows, times, async (row, { samples }, round) => {
    const server = await startRow(row, bench.upstream.url, profiling(bench, row.name))
    try {
      const sample = await measure(server, { ...row.target, url: server.url }, row)
      if (round > 0) samples.push(sample)
    } finally {
      await bench.load.call('reset')
      await server.stop()
    }
  })
}

export function profiling({ options }: Bench, name: string): string[] {
  if (options.profile === undefined) return []
  return ['--cpu-prof', `--cpu-prof-dir=${options.profile}`, `--cpu-prof-name=${name}.cpuprofile`]
}

export async function setMode({ upstream }: Bench, mode: Mode): Promise<void> {
  await upstream.call('mode', mode)
}
