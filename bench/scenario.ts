/** Shared by all scenarios: options, rounds and results. */
import type { Child } from './child.ts'
import type { Target } from './load.ts'
import { startRow, type Row } from './rows.ts'
import { createSteady } from './steady.ts'
import type { Mode } from './upstream.ts'

export interface Options {
  rounds: number | undefined
  streams: number
  deltas: number
  /** Duration of a row in each round. */
  seconds: number
  /** Numbers of streams that `open` measures. */
  open: readonly number[]
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

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
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

type Measure = (server: Child, target: Target) => Promise<Sample>

/**
 * Measures on servers that stay up for all rounds, so that they are warm. Each row is measured in a pair with the reference, in
 * alternating order. If a row fails, its server is stopped.
 */
export async function inPairs(
  bench: Bench,
  rows: readonly Row[],
  { rounds, reference }: { rounds: number; reference: string },
  measure: Measure,
): Promise<{ rows: ResultRow[]; notes: string[] }> {
  let base = rows.find(({ name }) => name === reference)
  const spins = () => Promise.all([bench.spinner, bench.load].map((child) => child.call<number>('spin')))
  const steady = createSteady(spins, bench.options.quick ? 1 : 2)
  const servers = new Map<Row, Child>()
  async function measureRow(row: Row): Promise<Sample> {
    const server = servers.get(row) ?? (await startRow(row, bench.upstream.url, profiling(bench, row)))
    servers.set(row, server)
    try {
      return await measure(server, { ...row.target, url: server.url })
    } catch (error) {
      servers.delete(row)
      if (row === base) base = undefined
      await bench.load.call('reset')
      await server.stop()
      throw error
    }
  }
  try {
    const results = await inRounds(bench, rows, { rounds, warmUp: true }, async (row, result, round) => {
      if (round === 0) return void (await measureRow(row))
      const pair = base === undefined || row === base ? [row] : round % 2 === 0 ? [base, row] : [row, base]
      const samples = await steady.measure(pair.map((one) => () => measureRow(one)))
      result.samples.push(samples[pair.indexOf(row)]!)
      if (base !== undefined) (result.beside ??= []).push(samples[pair.indexOf(base)]!)
    })
    return { rows: results, notes: steady.notes() }
  } finally {
    await Promise.all([...servers.values()].map((server) => server.stop()))
  }
}

/** Starts a new server for each measurement. */
export async function inRoundsAfresh(
  bench: Bench,
  rows: readonly Row[],
  times: { rounds: number; warmUp: boolean },
  measure: Measure,
): Promise<ResultRow[]> {
  return inRounds(bench, rows, times, async (row, { samples }, round) => {
    const server = await startRow(row, bench.upstream.url, profiling(bench, row))
    try {
      const sample = await measure(server, { ...row.target, url: server.url })
      if (round > 0) samples.push(sample)
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
