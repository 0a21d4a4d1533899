/** The table of the README, from the results of one run. Pure. */
import type { machineFacts } from './machine.ts'
import { reference } from './rows.ts'
import type { Result, ResultRow } from './scenario.ts'
import { ratioOf, ratiosOf, spreadOf, type Spread } from './schedule.ts'
import { medianOf } from './table.ts'

/** The rows of the table, in its order. */
export const readmeRows: Readonly<Record<string, string>> = {
  'ai-sdk-ui': 'AI SDK 7 `streamText` to its UI stream, Hono',
  'ai-sdk-provider': 'AI SDK 7 `doStream` read by hand, `node:http`',
  'before-ui': 'Millrace, the build before',
  'millrace-package': 'Millrace, package decoder',
  'millrace-ui': '**Millrace**',
  floor: 'a bare re-encoder on `node:http`',
}

type Cell = (name: string) => string | undefined

export function formatReadme(results: readonly Result[], machine: ReturnType<typeof machineFacts>): string {
  const of = (scenario: string) => results.find((result) => result.scenario === scenario)
  const rowOf = (scenario: string, name: string) => {
    const row = of(scenario)?.rows.find((each) => each.name === name)
    return row === undefined || row.samples.length === 0 ? undefined : row
  }
  const ratio = (name: string, key: string) => {
    const [row, base] = [rowOf('throughput', name), rowOf('throughput', reference)]
    return row && ratioOf(row, base?.samples ?? [], key)
  }
  const value = (scenario: string, name: string, key: string) => {
    const row = rowOf(scenario, name)
    return row && medianOf(row, key)
  }
  const streams = Number(results.find(({ scenario }) => scenario.startsWith('open '))?.scenario.slice(5) ?? 0)
  const columns: [string, Cell][] = [
    ['deltas/s', (name) => shown(value('throughput', name, 'rate'), 0)],
    ['× AI SDK', (name) => shown(ratio(name, 'rate')?.median, 1)],
    ['of a re-encoder', (name) => shown(shareOf(of('throughput'), name)?.median, 2)],
    ['CPU per delta, × AI SDK', (name) => shown(ratio(name, 'cpu')?.median, 2)],
    [
      'first delta above the floor',
      (name) => (name === 'floor' ? undefined : withUnit(value('first-delta', name, 'over'), 2, 'ms')),
    ],
    ['paced: CPU per delta', (name) => withUnit(value('paced', name, 'cpu'), 0, 'µs')],
    ['paced: late p50 / p99', (name) => lateness(rowOf('paced', name))],
    [
      `memory of one of ${streams.toLocaleString('en')} open streams`,
      (name) => withUnit(value(`open ${streams}`, name, `rss${streams}`), 0, 'KB'),
    ],
  ]
  const names = Object.keys(readmeRows).filter((name) => results.some(({ scenario }) => rowOf(scenario, name)))
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const noise = ratio(reference, 'cpu')
  const { cpu, cores, memoryGB, disk, node, date, commit, busy } = machine
  return [
    line(['', ...columns.map(([title]) => title)]),
    line(Array.from({ length: columns.length + 1 }, () => '---')),
    ...names.map((name) => line([readmeRows[name]!, ...columns.map(([, cell]) => cell(name) ?? '')])),
    '',
    `\`npm run bench -- readme\` on ${cpu}, ${cores} cores, ${memoryGB} GB, recording on ${disk}, Node ${node}, ${date.slice(0, 10)}, commit ${commit}${busy > 0.5 ? `, load ${busy} before it` : ''}.`,
    ...(noise === undefined
      ? []
      : [
          `The AI SDK beside itself has ${noise.least.toFixed(2)} to ${noise.most.toFixed(2)}: smaller differences are noise.`,
        ]),
  ].join('\n')
}

/** The deltas/s of a row as a share of the re-encoder's, both in the same round and as ratios to the reference. */
function shareOf(throughput: Result | undefined, name: string): Spread | undefined {
  const find = (wanted: string) => throughput?.rows.find((row) => row.name === wanted)
  const [row, floor, base] = [find(name), find('floor'), find(reference)?.samples ?? []]
  if (row === undefined || floor === undefined) return undefined
  const floors = ratiosOf(floor, base, 'rate')
  return spreadOf(ratiosOf(row, base, 'rate').map((each, i) => each / (floors[i] ?? Number.NaN)))
}

function lateness(row: ResultRow | undefined): string | undefined {
  if (row === undefined) return undefined
  const [p50, p99] = [medianOf(row, 'p50'), medianOf(row, 'p99')]
  return p50 === undefined || p99 === undefined ? undefined : `${shown(p50, 1)} / ${shown(p99, p99 < 10 ? 1 : 0)} ms`
}

function withUnit(value: number | undefined, digits: number, unit: string): string | undefined {
  return value === undefined ? undefined : `${shown(value, digits)} ${unit}`
}

function shown(value: number | undefined, digits: number): string | undefined {
  return value?.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}
