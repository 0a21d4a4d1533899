/** The benchmark's pieces that need no process: what it counts, its options, and what it takes for a fault. */
import { describe, expect, test } from 'vitest'
import type { Child } from '../../bench/child.ts'
import { createScanner, deltaText } from '../../bench/deltas.ts'
import { createChunkedDecoder } from '../../bench/http-stream.ts'
import { awaitRest } from '../../bench/meter.ts'
import { readCommandLine } from '../../bench/options.ts'
import { removeFolders, selectRows } from '../../bench/rows.ts'
import { mostStreams } from '../../bench/scenarios/open.ts'
import { faultsOf } from '../../bench/scenarios/paced.ts'
import { createSteady } from '../../bench/steady.ts'

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
