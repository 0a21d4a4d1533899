/**
 * Measures each row beside the reference. Every pair has two servers of its own, so that both are equally warm: a reference
 * that all rows share would have answered more than any of them. The reference has a pair too: how far its ratio is from 1
 * shows the noise.
 */
import type { Child } from './child.ts'
import type { Target } from './load.ts'
import { startRow, type Row } from './rows.ts'
import { profiling, type Bench, type ResultRow, type Sample } from './scenario.ts'
import { schedule } from './schedule.ts'
import { createSteady } from './steady.ts'

/** One of the two servers of a pair. */
export interface Side {
  server: Child
  target: Target
}

export interface Times {
  rounds: number
  warmUps?: number
  reference: string
}

interface Pair {
  row: Row
  base: Row | undefined
  result: ResultRow
  /** The row's, then the reference's. */
  sides: Side[]
}

export interface Turn {
  round: number
  order: readonly number[]
  /** All that run, those of other pairs too. */
  servers: readonly Child[]
}

export type MeasurePair = (sides: Side[], turn: Turn) => Promise<Sample[]>

/** `measure` returns a sample for each side of a pair. A row that throws is reported, and skipped from then on. */
export async function inPairsTogether(bench: Bench, times: Times, measure: MeasurePair): Promise<ResultRow[]> {
  const { rows } = bench
  const { rounds, warmUps = 1, reference } = times
  const base = rows.find(({ name }) => name === reference)
  const pairs = rows.map((row): Pair => {
    const { name, title } = row
    return { row, base, result: { name, title, samples: [], ...(base && { beside: [] }) }, sides: [] }
  })
  let said = -1
  try {
    for (const { pair: at, round, referenceFirst } of schedule(pairs.length, { warmUps, rounds })) {
      if (round !== said) bench.say(round === 0 ? 'warm-up' : `round ${round} of ${rounds}`)
      said = round
      const pair = pairs[at]!
      const { result } = pair
      if (result.failed !== undefined) continue
      try {
        if (pair.sides.length === 0) await startSides(bench, pair)
        const order = pair.sides.length === 1 ? [0] : referenceFirst ? [1, 0] : [0, 1]
        const servers = pairs.flatMap(({ sides }) => sides.map(({ server }) => server))
        const [sample, beside] = await measure(pair.sides, { round, order, servers })
        if (round === 0) continue
        result.samples.push(sample!)
        if (beside !== undefined) result.beside?.push(beside)
      } catch (error) {
        result.failed = error instanceof Error ? error.message : String(error)
        bench.say(`${result.name} failed: ${result.failed}`)
        await bench.load.call('reset')
        await stopSides(pair)
      }
    }
    return pairs.map(({ result }) => result)
  } finally {
    await Promise.all(pairs.map(stopSides))
  }
}

/** The two sides of a pair one after the other, at a constant machine speed if possible, and while no other server works. */
export async function inPairs(
  bench: Bench,
  times: Times,
  measure: (server: Child, target: Target) => Promise<Sample>,
): Promise<{ rows: ResultRow[]; notes: string[] }> {
  const spins = () => Promise.all([bench.spinner, bench.load].map((child) => child.call<number>('spin')))
  const steady = createSteady(spins, bench.options.quick ? 1 : 2)
  const rows = await inPairsTogether(bench, times, async (sides, { round, order, servers }) => {
    const each = order.map((at) => async () => {
      await bench.rest(servers)
      return measure(sides[at]!.server, sides[at]!.target)
    })
    const samples: Sample[] = []
    if (round > 0) samples.push(...(await steady.measure(each)))
    else for (const one of each) samples.push(await one())
    return sides.map((_, side) => samples[order.indexOf(side)]!)
  })
  return { rows, notes: steady.notes() }
}

async function startSides(bench: Bench, { row, base, sides }: Pair): Promise<void> {
  for (const [one, profile] of [
    [row, row.name],
    [base, `${base?.name}-beside-${row.name}`],
  ] as const) {
    if (one === undefined) continue
    const server = await startRow(one, bench.upstream.url, profiling(bench, profile))
    sides.push({ server, target: { ...one.target, url: server.url } })
  }
}

async function stopSides({ sides }: Pair): Promise<void> {
  await Promise.all(sides.splice(0).map(({ server }) => server.stop()))
}
