/** One request at a time: the latency that a server adds to the model request and to the first delta of the response. */
import type { Target } from '../load.ts'
import { inPairs } from '../pairs.ts'
import { setMode, type Bench, type Result } from '../scenario.ts'
import { median } from '../schedule.ts'
import { createSpeedometer } from '../steady.ts'

/** Compared with the minimum that any server must do. */
const usual = 'floor'
/** Requests at full core speed wanted per round. A round may take up to nine times as long to get them. */
const enough = 40

/** ms of one request: until the model server has it and answers, from there until the first delta arrives, and both. */
interface Way {
  there: number
  back: number
  both: number
}

/** One request, read to its end. The model server must be in the mode `first`. */
export async function askOnce({ load, upstream }: Bench, target: Target): Promise<Way> {
  const times = await load.call<Record<'asked' | 'sent' | 'at', number>>('first', { target })
  await upstream.call('finish')
  await load.call('drain')
  const [there, back] = [(times.sent - times.asked) / 1000, (times.at - times.sent) / 1000]
  return { there, back, both: there + back }
}

export async function firstDelta(bench: Bench): Promise<Result> {
  const { reference = usual } = bench.options
  const { rounds = 7, seconds, requests = 500 } = bench.options
  const warmed = new Set<string>()
  const isFast = createSpeedometer(() =>
    Promise.all([bench.spinner, bench.load].map((child) => child.call<number>('glance'))),
  )
  for (let i = 0; i < 200; i++) await isFast()
  let asked = 0
  let counted = 0
  const { rows, notes } = await inPairs(bench, { rounds, reference }, async (_server, target) => {
    await setMode(bench, { kind: 'first' })
    const all: Way[] = []
    const atFullSpeed: Way[] = []
    const least = warmed.has(target.url) ? 1 : requests
    warmed.add(target.url)
    const until = performance.now() + seconds * 250
    const latest = until + seconds * 2000
    do {
      const before = await isFast()
      const way = await askOnce(bench, target)
      all.push(way)
      if (before && (await isFast())) atFullSpeed.push(way)
    } while (
      performance.now() < until ||
      all.length < least ||
      (atFullSpeed.length < enough && performance.now() < latest)
    )
    asked += all.length
    counted += atFullSpeed.length
    // If the machine is rarely at full speed, all requests count.
    const ways = atFullSpeed.length < enough / 4 ? all : atFullSpeed
    const of = (key: keyof Way) => median(ways.map((way) => way[key]))
    return { there: of('there'), back: of('back'), both: of('both') }
  })
  for (const { samples, beside } of rows) {
    for (const [i, sample] of samples.entries()) sample['over'] = sample['both']! - (beside?.[i]?.['both'] ?? 0)
  }
  return {
    scenario: 'first-delta',
    title: `One stream at a time: ms that the server adds to the first delta; medians of requests at full core speed, then of ${rounds} rounds`,
    reference,
    columns: [
      { key: 'there', title: 'to the model', digits: 2 },
      { key: 'back', title: 'first delta back', digits: 2 },
      { key: 'both', title: 'together', digits: 2, ratio: true },
      { key: 'over', title: 'above the floor', digits: 2 },
    ],
    rows,
    notes: [
      `Each server got ${requests} requests before the first measurement.`,
      'The model server answers each request at once with one delta, then waits until that has arrived.',
      `${counted} of ${asked} requests ran at full core speed, according to a short test on each core before and after. If a round has enough of them, only they count.`,
      ...notes,
    ],
  }
}
