/** Parallel streams at full speed: the cost of a delta when the server is the bottleneck. */
import { forgetPeak, readUsage } from '../meter.ts'
import { inPairs } from '../pairs.ts'
import { reference as usual } from '../rows.ts'
import { setMode, type Bench, type Result } from '../scenario.ts'

export async function throughput(bench: Bench): Promise<Result> {
  const { reference = usual } = bench.options
  const { streams, deltas, seconds, rounds = 7, quick } = bench.options
  let busiest = 0
  const { rows, notes } = await inPairs(bench, { rounds, warmUps: 2, reference }, async (server, target) => {
    forgetPeak(server)
    await setMode(bench, { kind: 'burst', deltas })
    const [before, loadBefore] = [await readUsage(server), await ownCpu(bench)]
    const given = { target, streams, deltas, seconds }
    const done = await bench.load.call<{ answers: number; seconds: number }>('throughput', given, (seconds + 30) * 1000)
    const [after, loadAfter] = [await readUsage(server), await ownCpu(bench)]
    await bench.rest([server])
    const { cpu } = await readUsage(server)
    busiest = Math.max(busiest, (loadAfter - loadBefore) / done.seconds)
    const count = done.answers * deltas
    return {
      rate: count / done.seconds,
      cpu: ((cpu - before.cpu) * 1e5) / count,
      peak: after.peak / 2 ** 20,
    }
  })
  if (!quick) notes.push('CPU includes what a server does after the streams: Millrace fills the tables for queries.')
  notes.push(`The load generator and the model server together used at most ${Math.round(busiest * 100)} % of a core.`)
  if (busiest > 0.9)
    notes.push(
      'They were the bottleneck for the fastest rows: the deltas/s of those rows are too low, their CPU is right.',
    )
  return {
    scenario: 'throughput',
    title: `${streams} parallel streams of ${deltas} deltas each at full speed; medians of ${rounds} rounds of ${seconds} s`,
    reference,
    columns: [
      { key: 'rate', title: 'deltas/s', digits: 0, ratio: true },
      { key: 'cpu', title: 'CPU s per 100k', digits: 2, ratio: true },
      { key: 'peak', title: 'peak MB', digits: 0, ratio: true },
    ],
    rows,
    notes,
  }
}

/** CPU seconds of the load generator and the model server. */
async function ownCpu({ load, upstream }: Bench): Promise<number> {
  const cpus = await Promise.all([load, upstream].map((child) => child.call<number>('cpu')))
  return cpus.reduce((sum, cpu) => sum + cpu, 0)
}
