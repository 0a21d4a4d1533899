/**
 * Servers on one Redis beside one on SQLite: deltas/s and CPU per delta of one, two and three of them, what Redis costs, the first delta, and how
 * long after `kill -9` of a run's owner another one goes on with it.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hasRedis, startRedis, type RedisServer } from '../../test/support/redis-server.ts'
import { startChild, type Child } from '../child.ts'
import { readUsage } from '../meter.ts'
import { envOf, selectRows } from '../rows.ts'
import { setMode, type Bench, type Result, type ResultRow, type Sample } from '../scenario.ts'
import { median } from '../schedule.ts'

interface Fleet {
  name: string
  title: string
  size: number
  store: 'sqlite' | 'redis'
}

const fleets: Fleet[] = [
  { name: 'sqlite-1', title: 'one server on SQLite', size: 1, store: 'sqlite' },
  { name: 'redis-1', title: 'one instance on Redis', size: 1, store: 'redis' },
  { name: 'redis-2', title: 'two instances on Redis', size: 2, store: 'redis' },
  { name: 'redis-3', title: 'three instances on Redis', size: 3, store: 'redis' },
]

const agent = `recover: true
onDisconnect: cancel
workflow:
  - id: answer
    type: llm
    config: { model: "up:bench", stream: true, messages: "$input.messages" }
`
/** Requests, one at a time, for the first delta; and kills. */
const [asked, kills] = [30, 3]

export async function instances(bench: Bench): Promise<Result> {
  const { rounds = 3 } = bench.options
  const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  mkdirSync(join(dir, 'agents'))
  writeFileSync(join(dir, 'agents/bench.yaml'), agent)
  const measured = hasRedis ? fleets : fleets.filter(({ store }) => store === 'sqlite')
  const rows = measured.map(({ name, title }): ResultRow => ({ name, title, samples: [] }))
  try {
    for (let round = 1; round <= rounds; round++) {
      bench.say(`round ${round} of ${rounds}`)
      for (let i = 0; i < measured.length; i++) {
        const at = (i + round) % measured.length
        const row = rows[at]!
        if (row.failed !== undefined) continue
        try {
          row.samples.push(await measureFleet(bench, measured[at]!, join(dir, `${row.name}-${round}`)))
        } catch (error) {
          row.failed = error instanceof Error ? error.message : String(error)
          await bench.load.call('reset')
        }
      }
    }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
  const { streams, deltas, seconds } = bench.options
  return {
    scenario: 'instances',
    title: `${streams} parallel streams of ${deltas} deltas each at full speed, over all instances; medians of ${rounds} rounds of ${seconds} s`,
    reference: 'sqlite-1',
    columns: [
      { key: 'rate', title: 'deltas/s', digits: 0, ratio: true },
      { key: 'cpu', title: 'CPU µs per delta', digits: 1, ratio: true },
      { key: 'redis', title: 'of Redis', digits: 1 },
      { key: 'first', title: 'first delta ms', digits: 1 },
      { key: 'takeover', title: 'taken over after s', digits: 2 },
    ],
    rows,
    notes: [
      'The servers share the cores that the load generator, the model server and Redis leave: with fewer than eight cores deltas/s says nothing of more instances; CPU does.',
      ...(hasRedis ? [] : ['The rows of Redis are missing: they need redis-server or valkey-server.']),
    ],
  }
}

async function measureFleet(bench: Bench, { size, store }: Fleet, data: string): Promise<Sample> {
  const redis = store === 'redis' ? await startRedis({ aof: true }) : undefined
  const [row] = selectRows(['millrace-ui'])
  const command = join(import.meta.dirname, '../../bin/millrace.js')
  const boot = (nth: number) => {
    const args = [command, 'serve', join(data, '../agents'), '--port', '0', '--data', `${data}-${nth}`]
    args.push('--endpoint', `up=${bench.upstream.url}/v1`)
    if (redis !== undefined) args.push('--store', redis.url)
    return startChild({ args, env: envOf(row!), core: undefined, awaitReady: true, channel: false })
  }
  const servers = await Promise.all(Array.from({ length: size }, (_, nth) => boot(nth)))
  const targets = servers.map(({ url }) => ({ ...row!.target, url }))
  try {
    const { deltas, seconds } = bench.options
    const streams = Math.ceil(bench.options.streams / size)
    const run = async (time: number) => {
      const given = targets.map((target) => ({ target, streams, deltas, seconds: time }))
      return Promise.all(
        given.map((each) => bench.load.call<{ answers: number; seconds: number }>('throughput', each, 60_000)),
      )
    }
    await setMode(bench, { kind: 'burst', deltas })
    await run(seconds / 2)
    const before = [await cpuOf(servers), await cpuOfRedis(redis)] as const
    const done = await run(seconds)
    const after = [await cpuOf(servers), await cpuOfRedis(redis)] as const
    const count = done.reduce((sum, { answers }) => sum + answers * deltas, 0)
    const sample: Sample = {
      rate: count / Math.max(...done.map((each) => each.seconds)),
      cpu: ((after[0] - before[0]) * 1e6) / count,
      first: await firstDelta(bench, targets),
    }
    if (redis !== undefined) sample['redis'] = ((after[1] - before[1]) * 1e6) / count
    if (size > 1) sample['takeover'] = await takeover(bench, servers, boot)
    return sample
  } finally {
    await bench.load.call('reset')
    await Promise.all(servers.map((server) => server.stop()))
    await redis?.close()
  }
}

async function cpuOf(servers: readonly Child[]): Promise<number> {
  const used = await Promise.all(servers.map(readUsage))
  return used.reduce((sum, { cpu }) => sum + cpu, 0)
}

/** In seconds. */
async function cpuOfRedis(redis: RedisServer | undefined): Promise<number> {
  const info = (await redis?.command('INFO', 'cpu')) ?? ''
  return [...info.matchAll(/^used_cpu_(?:sys|user):([\d.]+)/gmu)].reduce((sum, [, cpu]) => sum + Number(cpu), 0)
}

async function firstDelta(bench: Bench, targets: readonly object[]): Promise<number> {
  await setMode(bench, { kind: 'first' })
  const times: number[] = []
  for (let i = 0; i < asked; i++) {
    const target = targets[i % targets.length]
    const { asked: began, at } = await bench.load.call<{ asked: number; at: number }>('first', { target })
    await bench.upstream.call('finish')
    await bench.load.call('drain')
    times.push((at - began) / 1000)
  }
  return median(times)
}

/** Seconds from the kill of a run's owner until a reader elsewhere has what its new owner says. */
async function takeover(bench: Bench, servers: Child[], boot: (nth: number) => Promise<Child>): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < kills; i++) {
    await setMode(bench, { kind: 'paced', perSecond: 20 })
    const [owner, other] = [servers[0]!, servers[1]!]
    const started = await fetch(`${owner.url}/api/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ agentId: 'bench', input: { messages: [{ role: 'user', content: 'Go.' }] } }),
    })
    const { id } = (await started.json()) as { id: string }
    const leave = new AbortController()
    const events = await fetch(`${other.url}/api/runs/${id}/events?follow=1`, { signal: leave.signal })
    let text = ''
    let killed = 0
    for await (const chunk of events.body!) {
      text += Buffer.from(chunk).toString()
      if (killed === 0 && text.split('"text-delta"').length > 10) {
        process.kill(owner.pid, 'SIGKILL')
        killed = performance.now()
      }
      if (text.includes('"step-reset"')) break
    }
    times.push((performance.now() - killed) / 1000)
    leave.abort()
    await bench.upstream.call('finish')
    servers[0] = await boot(100 + i)
  }
  return median(times)
}
