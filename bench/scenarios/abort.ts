/** A client disconnects mid-stream: how long the model keeps generating, at your cost. */
import { inPairs } from '../pairs.ts'
import { reference as usual } from '../rows.ts'
import { setMode, type Bench, type Result } from '../scenario.ts'
import { median } from '../schedule.ts'

const patience = 3000

export async function abort(bench: Bench): Promise<Result> {
  const { reference = usual } = bench.options
  const { rounds = 7 } = bench.options
  const rows = bench.rows.filter((row) => row.stopsWhenLeft)
  const { rows: results, notes } = await inPairs({ ...bench, rows }, { rounds, reference }, async (_server, target) => {
    const times: number[] = []
    for (let i = 0; i < 5; i++) {
      await setMode(bench, { kind: 'paced', perSecond: 100 })
      const { at } = await bench.load.call<{ at: number }>('leave', { target, after: 3 })
      times.push(((await bench.upstream.call<number>('nextClose', {}, patience)) - at) / 1000)
    }
    return { stopped: median(times), worst: Math.max(...times) }
  })
  return {
    scenario: 'abort',
    title: `ms from a client's disconnect until the model connection is closed; medians of ${rounds} rounds of 5`,
    reference,
    columns: [
      { key: 'stopped', title: 'median ms', digits: 2, ratio: true },
      { key: 'worst', title: 'worst of 5', digits: 2 },
    ],
    rows: results,
    notes: [
      ...notes,
      'Peers get the request’s signal, as in their documentation; Millrace’s agent sets `onDisconnect: cancel`.',
    ],
  }
}
