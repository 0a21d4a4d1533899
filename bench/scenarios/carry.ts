/** Many streams at increasing speed, until deltas arrive late: the capacity of one core. A new server for each row. */
import { readUsage } from '../meter.ts'
import { reference as usual } from '../rows.ts'
import { inRoundsAfresh, type Bench, type Result, type Sample } from '../scenario.ts'
import { openStreams, warmUp } from './open.ts'

/** Deltas per second of each stream. */
const steps = [0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20]
/** Maximum p99 latency in ms. */
const late = 100

export async function carry(bench: Bench, rates: readonly number[] = steps): Promise<Result> {
  const { rounds = 1, open, seconds } = bench.options
  const streams = open[0]!
  const { upstream, load } = bench
  const { reference = usual } = bench.options
  const hold = (time: number) =>
    load.call<{ deltas: number; p50: number; p99: number }>('hold', { seconds: time }, time * 1000 + 60_000)
  const rows = await inRoundsAfresh(bench, bench.rows, { rounds, warmUp: false }, async (server, target) => {
    await warmUp(bench, target)
    await openStreams(bench, target, streams)
    let sample: Sample = { rate: 0, carried: 0, cpu: 0, p50: 0, p99: 0 }
    for (const rate of rates) {
      await upstream.call('pace', { perSecond: rate })
      await hold(seconds / 4)
      const before = await readUsage(server)
      const { deltas, p50, p99 } = await hold(seconds * 1.5)
      const { cpu } = await readUsage(server)
      // Deltas that have not arrived are late, too.
      if (p99 > late || deltas < rate * streams * seconds * 1.4) break
      sample = { rate, carried: rate * streams, cpu: ((cpu - before.cpu) * 1e5) / deltas, p50, p99 }
    }
    await upstream.call('finish')
    await load.call('drain', {}, 120_000)
    return sample
  })
  return {
    scenario: 'carry',
    title: `${streams.toLocaleString('en')} open streams: highest speed at which 99 % of deltas arrive within ${late} ms`,
    reference,
    columns: [
      { key: 'carried', title: 'deltas/s', digits: 0, ratio: true },
      { key: 'rate', title: 'per stream', digits: 1 },
      { key: 'cpu', title: 'CPU s per 100k', digits: 2, ratio: true },
      { key: 'p50', title: 'latency p50 ms', digits: 1 },
      { key: 'p99', title: 'p99 ms', digits: 1 },
    ],
    rows,
    notes: [`Speeds tried: ${rates.join(', ')} deltas/s per stream.`],
  }
}
