/** One request at a time: the latency that a server adds to the model request and to the first delta of the response. */
import type { Target } from '../load.ts'
import { setMode, type Bench, type Result } from '../scenario.ts'
import { median } from '../schedule.ts'
import { inTurns } from '../turns.ts'

/** Compared with the minimum that any server must do. */
const usual = 'floor'
/** Requests before those that a turn measures: after the other servers' turns the core's caches are full of theirs. */
const unmeasured = 5

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
  const { rounds = 7, requests = 500, quick, reference = usual } = bench.options
  const [turns, measured] = quick ? [1, 10] : [10, 40]
  const ask = async (target: Target, times: number) => {
    const ways: Way[] = []
    while (ways.length < times) ways.push(await askOnce(bench, target))
    return ways
  }
  await setMode(bench, { kind: 'first' })
  const rows = await inTurns<Way>(bench, {
    rounds,
    turns,
    warmUp: async (target) => void (await ask(target, requests)),
    measure: async (target) => (await ask(target, unmeasured + measured)).slice(unmeasured),
    sample(ways) {
      const of = (key: keyof Way) => median(ways.map((way) => way[key]))
      return { there: of('there'), back: of('back'), both: of('both') }
    },
  })
  const floor = rows.find(({ name }) => name === usual)?.samples
  for (const { samples } of rows) {
    for (const [i, sample] of samples.entries()) sample['over'] = sample['both']! - (floor?.[i]?.['both'] ?? 0)
  }
  return {
    scenario: 'first-delta',
    title: `One stream at a time: ms that the server adds to the first delta; medians of ${turns * measured} requests, then of ${rounds} rounds`,
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
      `The servers take turns of ${measured} requests, after ${unmeasured} that do not count: if the machine becomes slower, it is slower for all of them.`,
    ],
  }
}
