/** From the start of a process until it is ready. */
import { readUsage } from '../meter.ts'
import { reference as usual, timeVersion } from '../rows.ts'
import { inRoundsAfresh, type Bench, type Result } from '../scenario.ts'

export async function boot(bench: Bench): Promise<Result> {
  const { reference = usual } = bench.options
  const { rounds = 7 } = bench.options
  // One Millrace server handles all protocols, so only measure one row per store.
  const rows = bench.rows.filter(({ name }) => !/^(millrace|before)-/u.test(name) || /-ui(-memory)?$/u.test(name))
  const results = await inRoundsAfresh(bench, rows, { rounds, warmUp: true }, async (server, _, row) => {
    const { cpu, rss } = await readUsage(server)
    // On the same core, what it does after its start would be in the way.
    await server.stop()
    const version = await timeVersion(row)
    const sample = { boot: server.bootMs, cpu: cpu * 1000, rss: rss / 2 ** 20 }
    return version === undefined ? sample : { ...sample, version }
  })
  return {
    scenario: 'boot',
    title: `From spawn to ready; medians of ${rounds} rounds`,
    reference,
    columns: [
      { key: 'boot', title: 'ms', digits: 0, ratio: true },
      { key: 'cpu', title: 'CPU ms', digits: 0 },
      { key: 'rss', title: 'MB', digits: 0, ratio: true },
      { key: 'version', title: '--version, ms', digits: 0, ratio: true },
    ],
    rows: results,
    notes: [],
  }
}
