/** One request at a time: what a server adds on the way to the model, and on the way of its first delta back. */
import { reference } from '../rows.ts'
import { inRoundsOnServers, median, setMode, type Bench, type Result } from '../scenario.ts'

export async function firstDelta(bench: Bench): Promise<Result> {
  const { rounds = 7, seconds } = bench.options
  const rows = await inRoundsOnServers(bench, bench.rows, rounds, async (_server, target) => {
    await setMode(bench, { kind: 'first' })
    const there: number[] = []
    const back: number[] = []
    const until = performance.now() + seconds * 250
    do {
      const { asked, sent, at } = await bench.load.call<Record<'asked' | 'sent' | 'at', number>>('first', { target })
      there.push((sent - asked) / 1000)
      back.push((at - sent) / 1000)
      await bench.upstream.call('finish')
      await bench.load.call('drain')
    } while (performance.now() < until)
    return { there: median(there), back: median(back), both: median(there.map((ms, i) => ms + back[i]!)) }
  })
  return {
    scenario: 'first-delta',
    title: `One stream at a time: ms that the server adds until the first delta; medians of ${rounds} rounds`,
    reference,
    columns: [
      { key: 'there', title: 'to the model', digits: 2 },
      { key: 'back', title: 'first delta back', digits: 2, ratio: true },
      { key: 'both', title: 'together', digits: 2, ratio: true },
    ],
    rows,
    notes: ['The model server answers each request at once with one delta and says no more until that has arrived.'],
  }
}
