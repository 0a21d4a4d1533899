/** The benchmark with its processes, in one small case: how fast anything is does not matter here. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startLoad, startSpinner, startUpstream, type Child } from '../../bench/child.ts'
import { removeFolders, selectRows, startRow } from '../../bench/rows.ts'
import type { Bench, Result } from '../../bench/scenario.ts'
import { throughput } from '../../bench/scenarios/throughput.ts'
import { formatResult } from '../../bench/table.ts'

describe('with its processes', () => {
  let upstream: Child
  let load: Child
  let spinner: Child
  beforeAll(async () => {
    ;[upstream, load, spinner] = await Promise.all([startUpstream(), startLoad(), startSpinner()])
  })
  afterAll(async () => {
    await Promise.all([upstream, load, spinner].map((child) => child.stop()))
    removeFolders()
  })

  const benchOf = (only: string[]): Bench => ({
    rows: selectRows(only),
    upstream,
    load,
    spinner,
    options: {
      folder: '',
      before: undefined,
      rounds: 1,
      streams: 2,
      deltas: 20,
      seconds: 0.05,
      open: [3],
      paced: 3,
      rate: 20,
      warm: 0.03,
      requests: 20,
      profile: undefined,
      quick: false,
    },
    rest: () => Promise.resolve(),
    say: () => undefined,
  })
  const expectWhole = ({ rows: measured, columns }: Result, names: string[]) => {
    expect(measured.map(({ name, failed }) => [name, failed])).toEqual(names.map((name) => [name, undefined]))
    for (const { samples } of measured) {
      expect(samples).toHaveLength(1)
      for (const { key } of columns) expect(samples[0]![key], key).toEqual(expect.any(Number))
    }
  }

  test('throughput: the floor and Millrace, recorded and not, each stream whole', async () => {
    const names = ['floor', 'millrace-text', 'millrace-parts-memory']
    const rested: number[] = []
    const rest: Bench['rest'] = (servers) => Promise.resolve(void rested.push(servers.length))
    const result = await throughput({ ...benchOf(names), rest })
    expectWhole(result, names)
    // All that run before each measurement, and after it the one that was measured: its CPU includes that.
    expect(rested.slice(0, 6)).toEqual([1, 1, 2, 1, 3, 1])
    expect(rested.slice(6)).toEqual(rested.slice(6).map((_, i) => (i % 2 === 0 ? 3 : 1)))
    for (const { samples } of result.rows) expect(samples[0]!['rate']).toBeGreaterThan(0)
    expect(formatResult(result)).toMatch(/^floor: node:http by hand +[\d,]+ /mu)
  })

  test('a stream without all its deltas, or without its last frame, fails its row', async () => {
    const [row] = selectRows(['floor'])
    const server = await startRow(row!, upstream.url)
    try {
      await upstream.call('mode', { kind: 'burst', deltas: 20 })
      const target = { ...row!.target, url: server.url }
      const ask = (given: object) => load.call('throughput', { target, streams: 1, deltas: 20, seconds: 0, ...given })
      await expect(ask({})).resolves.toMatchObject({ answers: 1 })
      await expect(ask({ deltas: 21 })).rejects.toThrow('an answer had 20 of 21 deltas')
      await expect(ask({ target: { ...target, end: 'data: [OVER]' } })).rejects.toThrow('without its last frame')
      await expect(ask({ target: { ...target, url: upstream.url } })).rejects.toThrow('400')
    } finally {
      await server.stop()
    }
  })
})
