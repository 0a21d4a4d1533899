/** Many slow streams: memory per open stream, and latency of deltas. A new server for each row. */
import { existsSync, readFileSync } from 'node:fs'
import type { Child } from '../child.ts'
import { readUsage } from '../meter.ts'
import { reference as usual } from '../rows.ts'
import { inRoundsAfresh, setMode, type Bench, type Result, type Sample } from '../scenario.ts'
import { median } from '../schedule.ts'
import type { Target } from '../load.ts'

const limitsFile = '/proc/self/limits'
const hasLimits = existsSync(limitsFile)

/** Deltas per second of all streams together, so that more streams do not mean more deltas. */
const together = 4000

/** Warms up, so that lazy loading and slow uncompiled code are not attributed to the streams. */
export async function warmUp(bench: Bench, target: Target): Promise<void> {
  await setMode(bench, { kind: 'burst', deltas: 500 })
  await bench.load.call('throughput', { target, streams: 5, deltas: 500, seconds: bench.options.seconds / 4 })
}

/** Resolves when every stream has received its first delta and waits for the next. */
export async function openStreams(bench: Bench, target: Target, streams: number): Promise<void> {
  await setMode(bench, { kind: 'first' })
  // Limit concurrent connects: a burst would measure refused connections and retries instead.
  await bench.load.call('open', { target, streams, atOnce: 20 }, streams * 20 + 20_000)
}

/** One table per number of streams. */
export async function open(bench: Bench): Promise<Result[]> {
  const { reference = usual } = bench.options
  const { rounds = 1 } = bench.options
  const most = mostStreams()
  const levels = [...new Set(bench.options.open.map((streams) => Math.min(streams, most)))]
  const notes = bench.options.open
    .filter((streams) => streams > most)
    .map((streams) => {
      const needed = (2 * streams + spareFiles).toLocaleString('en')
      return `${streams.toLocaleString('en')} streams were not opened: a server needs ${needed} open files for them, and \`ulimit -Hn\` allows ${(2 * most + spareFiles).toLocaleString('en')}.`
    })
  const rows = await inRoundsAfresh(bench, bench.rows, { rounds, warmUp: false }, async (server, target, row) => {
    await warmUp(bench, target)
    const sample: Sample = { idle: (await readUsage(server)).rss / 2 ** 20 }
    for (const [i, streams] of levels.entries()) {
      bench.say(`${row.name}: ${streams.toLocaleString('en')} streams`)
      try {
        Object.assign(sample, await level(bench, server, target, streams, sample['idle']!))
      } catch (error) {
        // What was measured with fewer streams stands.
        if (i === 0) throw error
        notes.push(`${row.title}: ${streams.toLocaleString('en')} streams failed: ${messageOf(error)}`)
        break
      }
      sample[`flat${streams}`] = sample[`rss${streams}`]! / sample[`rss${levels[0]!}`]!
    }
    return sample
  })
  return levels.map((streams, i) => ({
    scenario: `open ${streams}`,
    title: `${streams.toLocaleString('en')} open streams, ${together.toLocaleString('en')} deltas/s in total`,
    reference,
    columns: [
      { key: 'idle', title: 'idle MB', digits: 0 },
      { key: `rss${streams}`, title: 'KB per stream', digits: 0, ratio: true },
      ...(i === 0 ? [] : [{ key: `flat${streams}`, title: `× of ${levels[0]!.toLocaleString('en')}`, digits: 2 }]),
      { key: `grown${streams}`, title: 'grown KB', digits: 1 },
      { key: `cpu${streams}`, title: 'CPU s per 100k', digits: 2, ratio: true },
      { key: `p50${streams}`, title: 'latency p50 ms', digits: 1 },
      { key: `p99${streams}`, title: 'p99 ms', digits: 1, ratio: true },
    ],
    rows,
    notes: [
      'Idle memory is measured after some answers, so that lazily loaded code is not attributed to the streams.',
      'Grown: what a stream costs more at the end of the measurement than at its start. Latency: from the model server’s write to the client’s read.',
      ...notes,
    ],
  }))
}

/** Files that a server has open besides its streams, each of which has two sockets. */
const spareFiles = 200

/** The number of streams for which this machine lets a process open files. Node raises its own limit to the hard one. */
export function mostStreams(limits = hasLimits ? readFileSync(limitsFile, 'utf8') : ''): number {
  const hard = /^Max open files +\d+ +(\d+)/mu.exec(limits)?.[1]
  return hard === undefined ? Number.POSITIVE_INFINITY : Math.floor((Number(hard) - spareFiles) / 2)
}

async function level(bench: Bench, server: Child, target: Target, streams: number, idle: number): Promise<Sample> {
  const { load, upstream, options } = bench
  const hold = options.seconds * 2.5
  await openStreams(bench, target, streams)
  await upstream.call('pace', { perSecond: together / streams })
  const before = await readUsage(server)
  const sizes: number[] = []
  const watch = setInterval(() => void readUsage(server).then(({ rss }) => sizes.push(rss)), hold * 40)
  let held
  try {
    held = await load.call<{ deltas: number; p50: number; p99: number }>(
      'hold',
      { seconds: hold },
      hold * 1000 + 20_000,
    )
  } finally {
    clearInterval(watch)
  }
  const { cpu } = await readUsage(server)
  const { sent } = await upstream.call<{ sent: number }>('finish')
  const { deltas } = await load.call<{ deltas: number }>('drain', {}, 30_000 + streams * 5)
  if (deltas !== sent) throw new Error(`${sent} deltas were sent and ${deltas} arrived`)
  const quarter = Math.max(1, sizes.length >> 2)
  const grown = median(sizes.slice(-quarter)) - median(sizes.slice(0, quarter))
  return {
    [`rss${streams}`]: ((median(sizes) / 2 ** 20 - idle) * 1024) / streams,
    [`grown${streams}`]: grown / 1024 / streams,
    [`cpu${streams}`]: ((cpu - before.cpu) * 1e5) / held.deltas,
    [`p50${streams}`]: held.p50,
    [`p99${streams}`]: held.p99,
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
