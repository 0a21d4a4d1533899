/** The table of the README is made from the results of one run. */
import { describe, expect, test } from 'vitest'
import { formatReadme } from '../../bench/readme.ts'
import type { Result, Sample } from '../../bench/scenario.ts'

const machine = {
  date: '2026-01-02T03:04:05.000Z',
  cpu: 'Some CPU',
  cores: 2,
  memoryGB: 8,
  system: 'linux',
  node: '24.0.0',
  busy: 0,
  pinned: true,
  disk: 'disk',
  commit: 'abc1234',
  peers: {},
}

function result(scenario: string, rows: Record<string, [Sample[], Sample[]?]>): Result {
  return {
    scenario,
    title: scenario,
    reference: 'ai-sdk-ui',
    columns: [],
    rows: Object.entries(rows).map(([name, [samples, beside]]) => {
      return { name, title: name, samples, ...(beside && { beside }) }
    }),
    notes: [],
  }
}

const theirs = [
  { rate: 10_000, cpu: 4 },
  { rate: 20_000, cpu: 2 },
]
const results = [
  result('throughput', {
    floor: [
      [
        { rate: 90_000, cpu: 0.4 },
        { rate: 180_000, cpu: 0.2 },
      ],
      theirs,
    ],
    'ai-sdk-ui': [theirs, theirs],
    // The second round ran on a machine twice as fast.
    'millrace-ui': [
      [
        { rate: 72_000, cpu: 0.6 },
        { rate: 144_000, cpu: 0.3 },
      ],
      theirs,
    ],
  }),
  result('first-delta', { 'millrace-ui': [[{ over: 0.2 }, { over: 0.3 }]] }),
  result('paced', { 'millrace-ui': [[{ cpu: 97.4, p50: 0.84, p99: 12.2 }]], floor: [[{ cpu: 39, p50: 0.3, p99: 2 }]] }),
  result('open 2000', { 'millrace-ui': [[{ rss2000: 95.4 }]], langchain: [[{ rss2000: 1 }]] }),
]

describe('benchmark: README', () => {
  test('ratios are of the same round, rows in their order, what was not measured is empty', () => {
    expect(formatReadme(results, machine).split('\n')).toEqual([
      '|  | deltas/s | × AI SDK | of a re-encoder | CPU per delta, × AI SDK | first delta above the floor | paced: CPU per delta | paced: late p50 / p99 | memory of one of 2,000 open streams |',
      '| --- | --- | --- | --- | --- | --- | --- | --- | --- |',
      '| AI SDK 7 `streamText` to its UI stream, Hono | 15,000 | 1.0 | 0.11 | 1.00 |  |  |  |  |',
      '| **Millrace** | 108,000 | 7.2 | 0.80 | 0.15 | 0.25 ms | 97 µs | 0.8 / 12 ms | 95 KB |',
      '| a bare re-encoder on `node:http` | 135,000 | 9.0 | 1.00 | 0.10 |  | 39 µs | 0.3 / 2.0 ms |  |',
      '',
      '`npm run bench -- readme` on Some CPU, 2 cores, 8 GB, recording on disk, Node 24.0.0, 2026-01-02, commit abc1234.',
      'The AI SDK beside itself has 1.00 to 1.00: smaller differences are noise.',
    ])
  })

  test('a row that was never measured has no line, and nothing measured is no table', () => {
    expect(formatReadme([], machine)).not.toMatch(/Millrace|AI SDK 7/u)
  })
})
