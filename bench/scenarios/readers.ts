/** Many readers of one run: what the server spends on a delta for each of them. A new server for each row and round. */
import { readUsage } from '../meter.ts'
import { inRoundsAfresh, setMode, type Bench, type Result, type Sample } from '../scenario.ts'
import { warmUp } from './open.ts'

const usualReaders = { full: 200, quick: 10 } as const
/** Writes of the model server a second, and deltas in each. */
const paces = [
  { key: 'one', perSecond: 40, together: 1 },
  { key: 'twenty', perSecond: 40, together: 20 },
] as const
const sse = { accept: 'text/event-stream' }

export async function readers(bench: Bench): Promise<Result> {
  const { rounds = 3, seconds, quick } = bench.options
  const { load, upstream } = bench
  const count = quick ? usualReaders.quick : usualReaders.full
  const followed = bench.rows.filter(({ target }) => target.follow !== undefined)
  const { reference = followed[0]?.name ?? '' } = bench.options
  const hold = (time: number) => load.call<{ deltas: number; p99: number }>('hold', { seconds: time }, 120_000)
  const rows = await inRoundsAfresh(bench, followed, { rounds, warmUp: false }, async (server, target) => {
    await warmUp(bench, target)
    await setMode(bench, { kind: 'first' })
    const { id } = await load.call<{ id: string }>('start', { target })
    const reader = { ...target, path: target.follow!.replace(':id', id), headers: sse, body: undefined }
    await load.call('open', { target: reader, streams: count, atOnce: 20 }, 60_000)
    const sample: Sample = {}
    for (const { key, ...pace } of paces) {
      await upstream.call('pace', pace)
      await hold(seconds)
      const before = await readUsage(server)
      const { deltas, p99 } = await hold(seconds * 2)
      const { cpu } = await readUsage(server)
      sample[`cpu-${key}`] = ((cpu - before.cpu) * 1e6) / deltas
      sample[`p99-${key}`] = p99
    }
    const { sent } = await upstream.call<{ sent: number }>('finish')
    const { deltas } = await load.call<{ deltas: number }>('drain', {}, 60_000)
    if (deltas !== sent * count) throw new Error(`${sent} deltas were sent, and ${count} readers got ${deltas}`)
    return sample
  })
  const columns = paces.flatMap(({ key, perSecond, together }) => [
    { key: `cpu-${key}`, title: `µs, ${perSecond} × ${together}/s`, digits: 2, ratio: true },
    { key: `p99-${key}`, title: 'late p99 ms', digits: 1 },
  ])
  return {
    scenario: 'readers',
    title: `One run with ${count} readers: CPU µs for a delta of a reader; medians of ${rounds} rounds`,
    reference,
    columns,
    rows,
    notes: [
      '40 × 20/s: the model server writes 40 times a second, 20 deltas each time.',
      'Only rows whose events are read apart from their start are measured: parts.',
    ],
  }
}
