/**
 * CPU per delta of a row and of the reference while both answer at the same time on one core. Other load on the machine
 * affects both equally, so this ratio is reliable even on a busy machine.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Child } from '../child.ts'
import { readUsage } from '../meter.ts'
import { reference as usual, startRow, type Row } from '../rows.ts'
import { setMode, type Bench, type Result, type ResultRow } from '../scenario.ts'

export async function sideBySide(bench: Bench): Promise<Result> {
  const { reference = usual } = bench.options
  const { streams, deltas, seconds, rounds = 7 } = bench.options
  const results = bench.rows.map(({ name, title }): ResultRow => ({ name, title, samples: [], beside: [] }))
  const servers = new Map<Row, Child>()
  const base = bench.rows.find(({ name }) => name === reference)

  /** CPU seconds of each row per 100k deltas, during a period in which all of them answer. */
  async function measure(rows: readonly Row[]): Promise<number[]> {
    await setMode(bench, { kind: 'burst', deltas })
    const children = rows.map((row) => servers.get(row)!)
    const given = { streams, deltas, seconds: seconds * 2.5 }
    const answering = Promise.all(
      rows.map(({ target }, i) => {
        const asked = { ...given, target: { ...target, url: children[i]!.url } }
        return bench.load.call('throughput', asked, (seconds + 60) * 1000)
      }),
    )
    // Rejections are reported by the `await` below.
    answering.catch(() => undefined)
    await pause(seconds * 250)
    const before = await look(children)
    await pause(seconds * 2000)
    const after = await look(children)
    await answering
    return after.map(({ cpu, heard }, i) => ((cpu - before[i]!.cpu) * 1e5) / (heard - before[i]!.heard))
  }

  async function look(children: readonly Child[]) {
    const heard = await bench.load.call<Record<string, number>>('heard')
    const usages = await Promise.all(children.map(readUsage))
    return usages.map(({ cpu }, i) => ({ cpu, heard: heard[children[i]!.url] ?? 0 }))
  }

  try {
    for (const row of bench.rows) servers.set(row, await startRow(row, bench.upstream.url))
    // Warm up each row alone first, so that no cold row is measured beside a warm one.
    for (let round = -1; round <= rounds; round++) {
      bench.say(round < 1 ? 'warm-up' : `round ${round} of ${rounds}`)
      for (const [i, row] of bench.rows.entries()) {
        const [cpu, beside] = await measure(round === -1 || base === undefined || row === base ? [row] : [row, base])
        if (round < 1) continue
        results[i]!.samples.push({ cpu: cpu! })
        results[i]!.beside!.push({ cpu: beside ?? cpu! })
      }
    }
  } finally {
    await Promise.all([...servers.values()].map((server) => server.stop()))
  }
  return {
    scenario: 'side-by-side',
    title: `Each row and the AI SDK's UI stream on one core at the same time, ${streams} streams of ${deltas} deltas each; medians of ${rounds} rounds`,
    reference,
    columns: [{ key: 'cpu', title: 'CPU s per 100k', digits: 2, ratio: true }],
    rows: results,
    notes: ['Two servers share their caches too: each costs more than it does alone.'],
  }
}
