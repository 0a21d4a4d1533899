/**
 * Many streams at the speed of a model: CPU per delta, and how late deltas arrive after the model server has sent them. A new
 * server for each row and round.
 */
import { core } from '../child.ts'
import { readUsage } from '../meter.ts'
import { inRoundsAfresh, type Bench, type Result } from '../scenario.ts'
import type { Target } from '../load.ts'
import { openStreams, warmUp } from './open.ts'

/** ms. The load generator's own lateness must be far below what it is to measure. */
const mostOwnP99 = 20
/** Share of a core that the load generator and the model server may use: beyond it their own queues are measured. */
const mostBusy = 0.93
/** Share of the deltas that the model server may send too late. */
const mostBehind = 0.02

interface Held {
  /** Share of its core that the load generator used. */
  busy: number
  deltas: number
  p50: number
  p99: number
  worst: number
}

export async function paced(bench: Bench): Promise<Result> {
  const { rounds = 3, paced: streams, rate: perSecond, seconds } = bench.options
  const { reference = bench.rows.some(({ name }) => name === 'before-ui') ? 'before-ui' : 'floor' } = bench.options
  const alone = await measureAlone(bench, streams)
  const rows = await inRoundsAfresh(bench, bench.rows, { rounds, warmUp: false }, async (server, target) => {
    await warmUp(bench, target)
    await openStreams(bench, target, streams)
    await bench.upstream.call('pace', { perSecond })
    // Deltas that arrive one by one take other paths through the server than a burst: these warm up, too.
    await hold(bench, seconds)
    const before = await readUsage(server)
    const held = await holdSoundly(bench, streams, seconds * 4)
    const { cpu, rss } = await readUsage(server)
    return {
      arrived: held.deltas / (seconds * 4),
      cpu: ((cpu - before.cpu) * 1e6) / held.deltas,
      p50: held.p50,
      p99: held.p99,
      worst: held.worst,
      busy: held.busy,
      rss: rss / 2 ** 20,
    }
  })
  const busiest = Math.max(alone.busy, ...rows.flatMap(({ samples }) => samples.map(({ busy }) => busy!)))
  return {
    scenario: 'paced',
    title: `${streams.toLocaleString('en')} streams of ${perSecond} deltas a second each; medians of ${rounds} rounds of ${seconds * 4} s`,
    reference,
    columns: [
      { key: 'arrived', title: 'deltas/s', digits: 0 },
      { key: 'cpu', title: 'CPU µs per delta', digits: 0, ratio: true },
      { key: 'p50', title: 'late p50 ms', digits: 1 },
      { key: 'p99', title: 'p99 ms', digits: 1, ratio: true },
      { key: 'worst', title: 'worst ms', digits: 0 },
      { key: 'rss', title: 'MB', digits: 0 },
    ],
    rows,
    notes: [
      'Late: from the model server’s write to the client’s read.',
      `Without a server between them, the load generator is late by p50 ${alone.p50.toFixed(1)}, p99 ${alone.p99.toFixed(1)} ms. With its model server it used at most ${percent(busiest)} of its core.`,
      `A row whose deltas/s are below ${(streams * perSecond).toLocaleString('en')} cannot carry this speed: its lateness grows for as long as it is measured.`,
    ],
  }
}

/** The load generator reads from the model server directly. Throws if it is not fit to measure anything at this speed. */
async function measureAlone(bench: Bench, streams: number): Promise<Held> {
  const { load, upstream, options } = bench
  const { rate: perSecond } = options
  bench.say('the load generator alone')
  const body = { model: 'bench', stream: true, messages: [] }
  const target: Target = { url: upstream.url, path: '/v1/chat/completions', body, mark: '"content":"~' }
  try {
    await openStreams(bench, target, streams)
    await upstream.call('pace', { perSecond })
    await hold(bench, options.seconds)
    const held = await holdSoundly(bench, streams, options.seconds)
    if (held.p99 <= mostOwnP99 || options.quick) return held
    throw new Error(
      `the load generator is too slow here: without a server its deltas are late by p99 ${held.p99.toFixed(1)} ms at ${streams * perSecond} deltas/s. Close other programs, or measure fewer streams (--paced ${Math.ceil(streams / 2)}).`,
    )
  } finally {
    await load.call('reset')
  }
}

/** Throws if the load generator, not the server, was the bottleneck. A quick look, whose numbers nobody compares, only says so. */
async function holdSoundly(bench: Bench, streams: number, seconds: number): Promise<Held> {
  const before = await lookAtLoad(bench)
  const held = await hold(bench, seconds)
  const after = await lookAtLoad(bench)
  const took = (after.at - before.at) / 1000
  const shares = after.cpu.map((cpu, i) => (cpu - before.cpu[i]!) / took)
  const busy = core.load === core.upstream ? shares[0]! + shares[1]! : Math.max(...shares)
  const wanted = streams * bench.options.rate * took
  const faults = faultsOf({ busy, behind: after.behind - before.behind, sent: after.sent - before.sent, wanted })
  const fault = `the load generator was the bottleneck: ${faults.join(', ')}`
  if (faults.length > 0 && !bench.options.quick) throw new Error(fault)
  if (faults.length > 0) bench.say(fault)
  return { ...held, busy }
}

/** Why a measurement is worthless. */
export function faultsOf(load: { busy: number; behind: number; sent: number; wanted: number }): string[] {
  const behind = load.behind / Math.max(1, load.sent)
  return [
    ...(load.busy > mostBusy ? [`it used ${percent(load.busy)} of its core`] : []),
    ...(behind > mostBehind ? [`it sent ${percent(behind)} of the deltas too late`] : []),
    ...(load.sent < load.wanted * 0.97 ? [`it sent ${percent(load.sent / load.wanted)} of the deltas`] : []),
  ]
}

function hold({ load }: Bench, seconds: number): Promise<Omit<Held, 'busy'>> {
  return load.call('hold', { seconds }, seconds * 1000 + 30_000)
}

async function lookAtLoad({ load, upstream }: Bench) {
  const [cpu, pacing] = await Promise.all([
    Promise.all([load, upstream].map((child) => child.call<number>('cpu'))),
    upstream.call<{ sent: number; behind: number }>('pacing'),
  ])
  return { at: performance.now(), cpu, ...pacing }
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}
