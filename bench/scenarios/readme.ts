/** What the table of the README shows, in one run of twenty minutes. */
import { readmeRows } from '../readme.ts'
import type { Bench, Result } from '../scenario.ts'
import { firstDelta } from './first-delta.ts'
import { open } from './open.ts'
import { paced } from './paced.ts'
import { throughput } from './throughput.ts'

export async function readme(bench: Bench): Promise<Result[]> {
  const { options } = bench
  const rows = bench.rows.filter(({ name }) => name in readmeRows)
  const given = (name: string, more: object): Bench => ({
    ...bench,
    rows,
    options: { ...options, ...more },
    say: (line) => bench.say(`${name}: ${line}`),
  })
  // Until V8 has optimised the code of all servers.
  const { requests = 8000 } = options
  const rounds = (most: number) => ({ rounds: options.rounds ?? most })
  return [
    ...(await whole('throughput', () => throughput(given('throughput', rounds(5))))),
    ...(await whole('first-delta', () => firstDelta(given('first-delta', { ...rounds(4), requests })))),
    ...(await whole('paced', () => paced(given('paced', rounds(3))))),
    ...(await whole('open', () => open(given('open', { ...rounds(1), open: options.open.slice(0, 1) })))),
  ]
}

/** What the others have measured must not be lost with a scenario that fails as a whole. */
async function whole(scenario: string, measure: () => Promise<Result | Result[]>): Promise<Result[]> {
  try {
    return [await measure()].flat()
  } catch (error) {
    const failed = error instanceof Error ? error.message : String(error)
    const row = { name: scenario, title: scenario, samples: [], failed }
    return [{ scenario, title: 'It failed.', reference: '', columns: [], rows: [row], notes: [] }]
  }
}
