/**
 * Measures rows in turns so short that a change of the machine's speed affects all of them: each has one server, of which a few
 * requests are measured, then those of the next one. Only for what needs no more than that at a time.
 */
import type { Child } from './child.ts'
import type { Target } from './load.ts'
import { startRow, type Row } from './rows.ts'
import { profiling, type Bench, type ResultRow, type Sample } from './scenario.ts'

export interface Turns<T> {
  rounds: number
  /** Turns of each row in a round. */
  turns: number
  /** Called once for each server, which nothing has asked yet. */
  warmUp(target: Target): Promise<void>
  /** One turn. */
  measure(target: Target): Promise<T[]>
  /** What a row's turns of a round come to. */
  sample(measured: T[]): Sample
}

interface Place<T> {
  row: Row
  result: ResultRow
  server?: Child | undefined
  measured: T[]
}

/** A row that throws is reported, and skipped from then on. */
export async function inTurns<T>(bench: Bench, given: Turns<T>): Promise<ResultRow[]> {
  const places = bench.rows.map((row): Place<T> => {
    const { name, title } = row
    return { row, result: { name, title, samples: [] }, measured: [] }
  })

  async function attempt(place: Place<T>, work: () => Promise<void>): Promise<void> {
    const { result } = place
    if (result.failed !== undefined) return
    try {
      await work()
    } catch (error) {
      result.failed = error instanceof Error ? error.message : String(error)
      bench.say(`${result.name} failed: ${result.failed}`)
      await bench.load.call('reset')
      await stop(place)
    }
  }

  try {
    bench.say('warm-up')
    for (const place of places) {
      await attempt(place, async () => {
        place.server = await startRow(place.row, bench.upstream.url, profiling(bench, place.row.name))
        await given.warmUp(targetOf(place))
      })
    }
    for (let round = 1; round <= given.rounds; round++) {
      bench.say(`round ${round} of ${given.rounds}`)
      for (let turn = 0; turn < given.turns; turn++) {
        for (const at of orderOf(places.length, turn)) {
          const place = places[at]!
          await attempt(place, async () => {
            await bench.rest(places.flatMap(({ server }) => server ?? []))
            place.measured.push(...(await given.measure(targetOf(place))))
          })
        }
      }
      for (const { result, measured } of places) {
        if (result.failed === undefined) result.samples.push(given.sample(measured.splice(0)))
      }
    }
    return places.map(({ result }) => result)
  } finally {
    await Promise.all(places.map(stop))
  }
}

/** Each turn begins with the next row, and every other one goes backwards: no row always follows the same one. */
export function orderOf(rows: number, turn: number): number[] {
  const order = Array.from({ length: rows }, (_, i) => (i + turn) % rows)
  return turn % 2 === 0 ? order : order.toReversed()
}

function targetOf<T>({ row, server }: Place<T>): Target {
  return { ...row.target, url: server!.url }
}

async function stop<T>(place: Place<T>): Promise<void> {
  const { server } = place
  place.server = undefined
  await server?.stop()
}
