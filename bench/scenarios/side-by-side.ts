/**
 * What a delta costs a row and the reference while both answer at the same time, on one core: whatever the machine does
 * meanwhile falls on both alike, so this ratio holds where nothing else does.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Child } from '../child.ts'
import { readUsage } from '../meter.ts'
import { reference, startRow, type Row } from '../rows.ts'
import { setMode, type Bench, type Result, type ResultRow } from '../scenario.ts'

export async function sideBySide(bench: Bench): Promise<Result> {
  const { streams, deltas, seconds, rounds = 7 } = bench.options
  const results = bench.rows.map(({ name, title }): ResultRow => ({ name, title, samples: [], beside: [] }))
  const servers = new Map<Row, Child>()
  const base = bench.rows.find(({ name }) => name === reference)

  /** CPU of each for 100k deltas, in a while in which all of them answer. */
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
    // Whoever rejects is told when all is over.
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
    // Alone first, so that a row whose code is still being compiled is not measured beside one that is warm.
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
    title: `Each beside the AI SDK's UI stream on one core, ${streams} streams of ${deltas} deltas for either; medians of ${rounds} rounds`,
    reference,
    columns: [{ key: 'cpu', title: 'CPU s per 100k', digits: 2, ratio: true }],
    rows: results,
    notes: ['Two servers share their caches too: each costs more than it does alone.'],
  }
}
