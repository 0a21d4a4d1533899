/** One request at a time: what a server adds on the way to the model, and on the way of its first delta back. */
import { inPairs, setMode, type Bench, type Result } from '../scenario.ts'

/** What a server adds is what it adds to the least that any server must do. */
const reference = 'floor'
/** A server that has just started compiles its code while it answers. */
const warm = 500

export async function firstDelta(bench: Bench): Promise<Result> {
  const { rounds = 7, seconds } = bench.options
  const warmed = new Set<string>()
  const { rows, notes } = await inPairs(bench, bench.rows, { rounds, reference }, async (_server, target) => {
    await setMode(bench, { kind: 'first' })
    const there: number[] = []
    const back: number[] = []
    const least = warmed.has(target.url) ? 1 : Math.ceil(warm * Math.min(1, seconds))
    warmed.add(target.url)
    const until = performance.now() + seconds * 250
    do {
      const { asked, sent, at } = await bench.load.call<Record<'asked' | 'sent' | 'at', number>>('first', { target })
      there.push((sent - asked) / 1000)
      back.push((at - sent) / 1000)
      await bench.upstream.call('finish')
      await bench.load.call('drain')
    } while (performance.now() < until || there.length < least)
    return { there: quartile(there), back: quartile(back), both: quartile(there.map((ms, i) => ms + back[i]!)) }
  })
  for (const { samples, beside } of rows) {
    for (const [i, sample] of samples.entries()) sample['over'] = sample['both']! - (beside?.[i]?.['both'] ?? 0)
  }
  return {
    scenario: 'first-delta',
    title: `One stream at a time: ms that the server adds until the first delta; lower quartiles, medians of ${rounds} rounds`,
    reference,
    columns: [
      { key: 'there', title: 'to the model', digits: 2 },
      { key: 'back', title: 'first delta back', digits: 2 },
      { key: 'both', title: 'together', digits: 2, ratio: true },
      { key: 'over', title: 'above the floor', digits: 2 },
    ],
    rows,
    notes: [
      'The model server answers each request at once with one delta and says no more until that has arrived.',
      ...notes,
    ],
  }
}

/** Whatever else the machine does only ever adds to it. */
function quartile(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 4)]!
}
