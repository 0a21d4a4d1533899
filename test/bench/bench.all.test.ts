/** That the benchmark's pieces work, not how fast anything is: its servers, its load, its meter, and what it takes for a fault. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { core, startChild, startLoad, startSpinner, startUpstream, type Child } from '../../bench/child.ts'
import { createScanner, deltaText } from '../../bench/deltas.ts'
import { canDropFileCache } from '../../bench/file-cache.ts'
import { createChunkedDecoder } from '../../bench/http-stream.ts'
import { awaitRest, readUsage, type Usage } from '../../bench/meter.ts'
import { readCommandLine } from '../../bench/options.ts'
import { removeFolders, selectRows, startRow } from '../../bench/rows.ts'
import type { Bench, Result } from '../../bench/scenario.ts'
import { abort } from '../../bench/scenarios/abort.ts'
import { carry } from '../../bench/scenarios/carry.ts'
import { cold } from '../../bench/scenarios/cold.ts'
import { firstDelta } from '../../bench/scenarios/first-delta.ts'
import { mostStreams, open } from '../../bench/scenarios/open.ts'
import { faultsOf, paced } from '../../bench/scenarios/paced.ts'
import { readers } from '../../bench/scenarios/readers.ts'
import { sideBySide } from '../../bench/scenarios/side-by-side.ts'
import { throughput } from '../../bench/scenarios/throughput.ts'
import { createSteady } from '../../bench/steady.ts'
import { formatResult } from '../../bench/table.ts'
import { inTurns } from '../../bench/turns.ts'
import { hasRedis, redisFault } from '../support/redis-server.ts'

const folder = resolve(import.meta.dirname, '../../bench')

describe('what the load takes for a delta', () => {
  test('numbered deltas are counted however the body is cut; their moments come out', () => {
    const body = Buffer.from([0, 1, 2].map((i) => `data: {"delta":"${deltaText(i, 1_000_000 + i)}"}\n\n`).join(''))
    for (let cut = 0; cut <= body.length; cut++) {
      const moments: number[] = []
      const scanner = createScanner('"delta":"~', true, (sentAt) => moments.push(sentAt))
      scanner.push(body.subarray(0, cut))
      scanner.push(body.subarray(cut))
      expect([scanner.count, moments]).toEqual([3, [1_000_000, 1_000_001, 1_000_002]])
    }
  })

  test.each([
    ['missing', [0, 2]],
    ['doubled', [0, 0]],
  ])('one that is %s is a fault', (_, indexes) => {
    const body = Buffer.from(indexes.map((i) => deltaText(i)).join(''))
    expect(() => createScanner('~', false).push(body)).toThrow(/came where 1 was next/u)
  })

  test('chunks are taken apart however they are cut; the end is seen only when it is there', () => {
    const body = Buffer.from('3\r\nabc\r\n1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n')
    for (let cut = 0; cut < body.length; cut++) {
      const decoder = createChunkedDecoder()
      const first = decoder.push(Buffer.from(body.subarray(0, cut))).toString()
      expect(decoder.complete).toBe(false)
      expect(first + decoder.push(Buffer.from(body.subarray(cut))).toString()).toBe('abcabcdefghijklmnopqrstuvwxyz')
      expect(decoder.complete).toBe(true)
    }
  })
})

test('before a measurement the servers are left alone until they have done what they put off', async () => {
  /** The reads until they rest, when these have used so much CPU at each. */
  const readsUntilRest = async (cpuOf: ((read: number) => number)[]) => {
    const reads = cpuOf.map(() => 0)
    const servers = cpuOf.map((_, i) => ({ pid: i }) as Child)
    await awaitRest(servers, 0, ({ pid }) => Promise.resolve({ cpu: cpuOf[pid]!(reads[pid]!++), rss: 0, peak: 0 }))
    return reads
  }
  expect(await readsUntilRest([(read) => [0, 0.4, 0.7, 0.71][read]!, () => 5])).toEqual([4, 4])
  expect(await readsUntilRest([(read) => read])).toEqual([41])
})

test('another checkout is measured beside this one', () => {
  const { before, options, only } = readCommandLine([
    '--before',
    '/old',
    '--reference',
    'before-ui',
    '--only',
    'before-ui',
  ])
  expect(options.reference).toBe('before-ui')
  const [row] = selectRows(only, false, before)
  expect(row).toMatchObject({ name: 'before-ui', title: 'Millrace before, ui, recorded in SQLite' })
  expect(row!.args('http://up')[0]).toBe('/old/bin/millrace.js')
  removeFolders()
})

test.skipIf(!hasRedis)(`redis: SQLite and Redis, read here and elsewhere, each entry seen${redisFault}`, async () => {
  const child = await startChild({
    args: [join(folder, 'redis.ts')],
    core: core.server,
    awaitReady: false,
    channel: true,
  })
  const [result] = await child.call<Result[]>('measure', { rounds: 1, seconds: 0.05, quick: true }, 60_000)
  await child.stop()
  expect(result!.rows.map(({ name, failed, samples }) => [name, failed, samples.length])).toEqual(
    ['sqlite', 'redis', 'redis-elsewhere'].map((name) => [name, undefined, 1]),
  )
  for (const { samples } of result!.rows) {
    for (const { key } of result!.columns) expect(samples[0]![key], key).toBeGreaterThan(0)
  }
})

test('record: one run, asked for everything before and after its compaction, and forked to its end', async () => {
  const args = ['--expose-gc', join(folder, 'record.ts')]
  const child = await startChild({ args, core: core.server, awaitReady: false, channel: true })
  const [result] = await child.call<Result[]>('measure', { quick: true }, 60_000)
  await child.stop()
  const asked = ['show', 'outline', 'events', 'page', 'slow', 'search', 'replay', 'export']
  expect(result!.rows.map(({ name }) => name)).toEqual(
    [['append', 'fill'], asked, ['fork', 'compact', 'vacuum'], asked.map((name) => `${name}-compacted`)].flat(),
  )
  // What users are promised of the log itself. The tables of so short a run are larger than it.
  const [, times] = /^Compacted, its log has .* MB: ([\d.]+) × its text\.$/u.exec(result!.notes[1]!) ?? []
  expect(Number(times)).toBeGreaterThan(1)
  expect(Number(times)).toBeLessThan(1.5)
})

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

  test('AG-UI and Socket.IO: every run is one of its own, each stream whole; a client that leaves stops the model', async () => {
    const bench = benchOf(['millrace-ag-ui-memory', 'millrace-socket.io-memory'])
    const names = bench.rows.map(({ name }) => name)
    for (const result of [await throughput(bench), await abort(bench)]) expectWhole(result, names)
  })

  test('side by side: both at once, with the ratio of the two', async () => {
    const bench = benchOf(['millrace-ui-memory', 'floor'])
    const result = await sideBySide({ ...bench, options: { ...bench.options, reference: 'floor' } })
    expectWhole(result, ['floor', 'millrace-ui-memory'])
    // The reference has a pair of its own as well: both are as warm.
    for (const { beside } of result.rows) expect(beside).toHaveLength(1)
  })

  test('first-delta, open, carry, abort and paced: what they measure is there', async () => {
    const bench = benchOf(['millrace-ui-memory'])
    const quick = { ...bench, options: { ...bench.options, quick: true } }
    const results = [await firstDelta(quick), ...(await open(bench)), await carry(bench, [20, 40]), await abort(bench)]
    results.push(await paced(quick))
    for (const result of results) expectWhole(result, ['millrace-ui-memory'])
    expect(results.map(({ scenario }) => scenario)).toEqual(['first-delta', 'open 3', 'carry', 'abort', 'paced'])
  })

  test('rows take turns, each with one server; one that fails is reported and skipped', async () => {
    const bench = benchOf(['floor', 'millrace-ui-memory'])
    const urls: string[] = []
    const turns: number[] = []
    const rows = await inTurns<number>(
      { ...bench, rest: (servers) => Promise.resolve(void turns.push(servers.length)) },
      {
        rounds: 2,
        turns: 2,
        warmUp: ({ url }) => Promise.resolve(void urls.push(url)),
        measure: ({ url }) =>
          url === urls[1] && turns.length > 4 ? Promise.reject(new Error('gone')) : Promise.resolve([1]),
        sample: (measured) => ({ count: measured.length }),
      },
    )
    expect(new Set(urls).size).toBe(2)
    // In the second round the second row fails in its first turn, and has no server from then on.
    expect(turns).toEqual([2, 2, 2, 2, 2, 2, 1])
    expect(rows.map(({ samples, failed }) => [samples.map(({ count }) => count), failed])).toEqual([
      [[2, 2], undefined],
      [[2], 'gone'],
    ])
  })

  test('readers: each reader of a run gets every delta; rows whose runs are not read apart are left out', async () => {
    const bench = benchOf(['floor', 'millrace-parts-memory'])
    const result = await readers({ ...bench, options: { ...bench.options, quick: true } })
    expectWhole(result, ['millrace-parts-memory'])
    expect(result.rows[0]!.samples[0]!['cpu-twenty']).toBeGreaterThan(0)
  })

  test.skipIf(!canDropFileCache)('cold: the files of a server are dropped from the cache, and it goes on', async () => {
    const names = ['floor', 'millrace-ui']
    const bench = benchOf(names)
    const result = await cold({ ...bench, options: { ...bench.options, quick: true } })
    expectWhole(result, names)
    const [floor, millrace] = result.rows.map(({ samples }) => samples[0]!['files']!)
    expect(floor).toBe(0)
    // The database, its WAL and its index.
    expect(millrace).toBeGreaterThanOrEqual(3)
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

  test('what a client leaves is told with the moment it was closed; what has ended is not', async () => {
    const [row] = selectRows(['floor'])
    const server = await startRow(row!, upstream.url)
    try {
      const target = { ...row!.target, url: server.url }
      await upstream.call('mode', { kind: 'first' })
      await load.call('first', { target })
      await expect(upstream.call('finish')).resolves.toEqual({ sent: 1 })
      await expect(load.call('drain')).resolves.toEqual({ deltas: 1 })
      const { at } = await load.call<{ at: number }>('leave', { target, after: 1 })
      const closed = await upstream.call<number>('nextClose')
      expect(closed).toBeGreaterThan(at)
      expect(closed - at).toBeLessThan(5_000_000)
    } finally {
      await server.stop()
    }
  })

  test('a server that does not start is told with what it said', async () => {
    const args = ['-e', 'console.error("no such thing"); process.exit(1)']
    await expect(startChild({ args, core: core.server, awaitReady: true, channel: false })).rejects.toThrow(
      'no such thing',
    )
  })

  test.skipIf(!existsSync('/proc/self/stat'))('without /proc a server tells of itself what /proc tells', async () => {
    const args = ['--import', join(folder, 'usage.ts'), join(folder, 'floor.ts'), upstream.url]
    const server = await startChild({ args, core: core.server, awaitReady: true, channel: true })
    try {
      await upstream.call('mode', { kind: 'burst', deltas: 20 })
      const target = { ...selectRows(['floor'])[0]!.target, url: server.url }
      await load.call('throughput', { target, streams: 5, deltas: 20, seconds: 0.3 })
      const [told, read] = [await server.call<Usage>('usage'), await readUsage(server)]
      expect(read.cpu).toBeGreaterThan(0.05)
      expect(Math.abs(read.cpu - told.cpu)).toBeLessThan(0.05)
      expect(read.rss / told.rss).toBeCloseTo(1, 0)
      expect(read.peak).toBeGreaterThanOrEqual(read.rss)
    } finally {
      await server.stop()
    }
  })
})

test('a load generator that is the bottleneck is told, whatever shows it', () => {
  const sound = { busy: 0.6, behind: 10, sent: 20_000, wanted: 20_000 }
  expect(faultsOf(sound)).toEqual([])
  expect(faultsOf({ ...sound, busy: 0.97 })).toEqual(['it used 97 % of its core'])
  expect(faultsOf({ ...sound, behind: 2000 })).toEqual(['it sent 10 % of the deltas too late'])
  expect(faultsOf({ ...sound, sent: 15_000 })).toEqual(['it sent 75 % of the deltas'])
})

test('as many streams are opened as files may be', () => {
  const limits =
    'Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1024                 20000                files     \n'
  expect(mostStreams(limits)).toBe(9900)
  expect(mostStreams('')).toBe(Infinity)
})

test('the row of the package decoder asks for it, and differs in nothing else', () => {
  const [row] = selectRows(['millrace-package'])
  expect(row).toMatchObject({ title: 'Millrace, package decoder', env: { MILLRACE_DECODER: 'package' } })
  expect(row!.target).toEqual(selectRows(['millrace-ui'])[0]!.target)
  removeFolders()
})

test('the command line says what there is when it is asked for something else', () => {
  expect(readCommandLine(['throughput', '--only', 'floor,millrace', '--rounds', '3'])).toMatchObject({
    scenarios: ['throughput'],
    only: ['floor', 'millrace'],
    options: { rounds: 3, streams: 50, deltas: 500, open: [2000, 10_000] },
  })
  expect(() => readCommandLine(['thruput'])).toThrow(/no scenario "thruput".*throughput, side-by-side/u)
  expect(() => readCommandLine(['--rounds', '0.5'])).toThrow('--rounds must be a whole number above 0')
  expect(() => readCommandLine(['--name', '../x'])).toThrow('--name')
  expect(() => selectRows(['langchian'])).toThrow(/no row "langchian".*langchain/u)
  expect(selectRows(['millrace']).length).toBeGreaterThan(4)
})

test('a quick look is one short round of small answers, of fewer servers', () => {
  const { options } = readCommandLine(['throughput', '--quick'])
  expect(options).toMatchObject({ rounds: 1, streams: 20, deltas: 100, seconds: 0.5, quick: true })
  expect(readCommandLine(['--quick', '--rounds', '3', '--streams', '50']).options).toMatchObject({
    rounds: 3,
    streams: 50,
  })
  const names = selectRows([], true).map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(['floor', 'ai-sdk-ui', 'langchain', 'millrace-ui']))
  // A pair has two servers. Each answers twice for half a second to warm up, and once to be measured.
  const seconds = names.length * options.seconds * 6
  expect(seconds).toBeLessThanOrEqual(40)
  expect(selectRows(['millrace-ui-memory'], true)).toHaveLength(1)
})

test('where only one try is allowed nothing is measured again', async () => {
  let speed = 1
  const steady = createSteady(async () => [(speed *= 2)], 1)
  let measured = 0
  await steady.measure([async () => ({ rate: ++measured })])
  expect([measured, steady.notes()[0]]).toEqual([1, expect.stringContaining('0 pairs were measured again')])
})
