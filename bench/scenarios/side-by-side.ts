/**
 * CPU per delta of a row and of the reference while both answer at the same time on one core. Other load on the machine
 * affects both equally, so this ratio is reliable even on a busy machine.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { readUsage } from '../meter.ts'
import { inPairsTogether, type Side } from '../pairs.ts'
import { reference as usual } from '../rows.ts'
import { setMode, type Bench, type Result, type Sample } from '../scenario.ts'

/** New servers get cheaper for seconds. Both of a pair warm up at the same time. */
const warmUps = 3

export async function sideBySide(bench: Bench): Promise<Result> {
  const { reference = usual } = bench.options
  const { streams, deltas, seconds, rounds = 7 } = bench.options

  /** CPU seconds of each server per 100k deltas, during a period in which all of them answer. */
  async function measure(sides: Side[], order: readonly number[]): Promise<Sample[]> {
    await setMode(bench, { kind: 'burst', deltas })
    const given = { streams, deltas, seconds: seconds * 2.5 }
    const answering = Promise.all(
      order.map((at) => bench.load.call('throughput', { ...given, target: sides[at]!.target }, (seconds + 60) * 1000)),
    )
    // Rejections are reported by the `await` below.
    answering.catch(() => undefined)
    await pause(seconds * 250)
    const before = await look(sides)
    await pause(seconds * 2000)
    const after = await look(sides)
    await answering
    return after.map(({ cpu, heard }, i) => ({ cpu: ((cpu - before[i]!.cpu) * 1e5) / (heard - before[i]!.heard) }))
  }

  async function look(sides: Side[]) {
    const heard = await bench.load.call<Record<string, number>>('heard')
    const usages = await Promise.all(sides.map(({ server }) => readUsage(server)))
    return usages.map(({ cpu }, i) => ({ cpu, heard: heard[sides[i]!.target.url] ?? 0 }))
  }

  const rows = await inPairsTogether(bench, { rounds, warmUps, reference }, (sides, { order }) => measure(sides, order))
  return {
    scenario: 'side-by-side',
    title: `Each row and the reference on one core at the same time, ${streams} streams of ${deltas} deltas each; medians of ${rounds} rounds`,
    reference,
    columns: [{ key: 'cpu', title: 'CPU s per 100k', digits: 2, ratio: true }],
    rows,
    notes: ['Two servers share their caches too: each costs more than it does alone.'],
  }
}
