/** examples/scale: the compose file as far as a test can see it, and the same fleet started by its script. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { load } from 'js-yaml'
import { io } from 'socket.io-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { hasRedis, redisFault, startRedis } from '../support/redis-server.ts'
import { grammarFaults, only } from '../support/engine.ts'
import { ran } from '../support/cli.ts'

const text = readFileSync('examples/scale/compose.yaml', 'utf8')

interface Service {
  image?: string
  command?: string
  build?: { dockerfile_inline: string }
  ports?: string[]
  depends_on?: object
  configs?: { source: string }[]
  volumes?: string[]
  deploy?: { replicas: number }
}
const compose = load(text) as {
  services: Record<'millrace' | 'valkey' | 'balancer', Service>
  volumes: object
  configs: { haproxy: { content: string } }
}
const { millrace, valkey, balancer } = compose.services
const haproxy = compose.configs.haproxy.content

test('images have a version', () => {
  const base = /^FROM (\S+)$/mu.exec(millrace.build!.dockerfile_inline)![1]
  for (const image of [valkey.image, balancer.image, base]) expect(image).toMatch(/^[\w/]+:\d+\.\d+[\w.-]*$/u)
  expect(millrace.deploy).toEqual({ replicas: 3 })
})

test('every flag of the instances exists; ports, names and volumes agree', async () => {
  const [command, ...words] = millrace.command!.split(' ')
  const { out } = await ran([command!, '--help'])
  const flags = words.filter((word) => word.startsWith('--'))
  expect(flags).toEqual(['--host', '--port', '--store'])
  for (const flag of flags) expect(out).toContain(`${flag} <`)
  const valueOf = (flag: string) => words[words.indexOf(flag) + 1]!
  const { protocol, hostname, port } = new URL(valueOf('--store'))
  // Valkey's own port.
  expect([protocol, compose.services[hostname as 'valkey'], port]).toEqual(['redis:', valkey, '6379'])
  expect(millrace.volumes).toEqual([`./agents:${words[0]}:ro`])
  const [bound] = /(?<=bind :)\d+/u.exec(haproxy)!
  expect(balancer.ports).toEqual([`127.0.0.1:${bound}:${bound}`])
  const servers = [...haproxy.matchAll(/server-template (\w+) \d+ (\w+):(\d+)/gu)].map(([, ...found]) => found)
  expect(servers).toEqual(Array(2).fill(['millrace', 'millrace', valueOf('--port')]))
  expect(haproxy).not.toContain('cookie')
  expect(valkey.volumes).toEqual([`${Object.keys(compose.volumes)[0]}:/data`])
})

/** What `examples/scale/start.ts` has started. */
interface Started {
  url: string
  instances: { url: string; pid: number }[]
  lines: string[]
  child: ChildProcess
  exit: Promise<number | null>
}

/** Where it is started: a server may run there. */
const place = mkdtempSync(join(tmpdir(), 'millrace-scale-test-'))
afterAll(() => rmSync(place, { recursive: true, force: true }))

async function start(): Promise<Started> {
  const script = resolve('examples/scale/start.ts')
  const child = spawn(process.execPath, [script, '--port', '0'], {
    cwd: place,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], MILLRACE_DEMO_DELAY_MS: '10' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exit = new Promise<number | null>((done) => child.once('exit', done))
  const lines: string[] = []
  const ready = Promise.withResolvers<string>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line)
    const url = /fleet is ready at (\S+)/u.exec(line)?.[1]
    if (url !== undefined) ready.resolve(url)
  })
  void exit.then(() => ready.reject(new Error(`it ended: ${lines.join('\n')}`)))
  const url = await ready.promise
  const instances = lines.flatMap((line) => {
    const [, at, pid] = /^instance \d at (\S+), process (\d+)$/u.exec(line) ?? []
    return at === undefined ? [] : [{ url: at, pid: Number(pid) }]
  })
  return { url, instances, lines, child, exit }
}

const json = { 'content-type': 'application/json' }
const messages = (content: string) => [{ id: crypto.randomUUID(), role: 'user', content }]

function parse(log: string): Entry[] {
  return log
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Entry)
}

describe.skipIf(!hasRedis)(`three instances and a balancer, started by the example’s script${redisFault}`, () => {
  let fleet: Started
  beforeAll(async () => void (fleet = await start()))
  afterAll(async () => {
    fleet?.child.kill('SIGKILL')
    for (const { pid } of fleet?.instances ?? []) spawnSync('kill', ['-9', String(pid)])
  })

  const countTo = (at: string, most: number) =>
    fetch(`${at}/api/runs`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ agentId: 'assistant', input: { messages: messages(`count to ${most}`) } }),
    })
  const follow = (at: string, run: string) => fetch(`${at}/api/runs/${run}/events?follow=1`)

  test('a run starts through the balancer and is read at every instance, with the same bytes', async () => {
    expect(fleet.instances).toHaveLength(3)
    const started = await countTo(fleet.url, 40)
    expect(started.status).toBe(202)
    const { id } = (await started.json()) as { id: string }
    const places = [fleet.url, ...fleet.instances.map(({ url }) => url)]
    const logs = await Promise.all(places.map(async (at) => (await follow(at, id)).text()))
    expect(new Set(logs).size).toBe(1)
    const entries = parse(logs[0]!)
    expect(grammarFaults(entries)).toEqual([])
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'completed' }])
  })

  test('`useChat`’s stream passes the balancer while the model speaks', async () => {
    const response = await fetch(`${fleet.url}/api/chat`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ agentId: 'assistant', messages: messages('count to 40') }),
    })
    const chunks: string[] = []
    for await (const chunk of response.body!) chunks.push(Buffer.from(chunk).toString())
    expect(chunks.length).toBeGreaterThan(10)
    expect(chunks.join('')).toMatch(/data: \[DONE\]\n\n$/u)
  })

  test('a run that began on one instance is watched over Socket.IO through the balancer', async () => {
    const { id } = (await (await countTo(fleet.instances[0]!.url, 40)).json()) as { id: string }
    const socket = io(fleet.url, { transports: ['websocket'], forceNew: true })
    try {
      const finished = new Promise<void>((done) => {
        socket.on('event', ({ type }: { type: string }) => type === 'RUN_FINISHED' && done())
      })
      const data = { protocolVersion: '1.0', runId: id }
      expect(await socket.emitWithAck('message', { type: 'watch_run', data })).toMatchObject({ ok: true })
      await finished
    } finally {
      socket.close()
    }
  })

  test('the instance that runs it is killed: another one goes on, and the reader misses nothing', async () => {
    const [first, second] = fleet.instances
    const { id } = (await (await countTo(first!.url, 100)).json()) as { id: string }
    const reading = await follow(second!.url, id)
    let log = ''
    let isKilled = false
    for await (const chunk of reading.body!) {
      log += Buffer.from(chunk).toString()
      if (!isKilled && log.includes('text-delta')) process.kill(first!.pid, 'SIGKILL')
      isKilled ||= log.includes('text-delta')
    }
    const entries = parse(log)
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, i) => i + 1))
    expect(grammarFaults(entries)).toEqual([])
    expect(only(entries, 'step-reset').length).toBeGreaterThan(0)
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'completed' }])
    await expect.poll(() => fleet.lines).toContain('instance 1 has ended (SIGKILL)')
    // No request meets the one that is gone.
    const statuses = await Promise.all(Array.from({ length: 6 }, async () => (await countTo(fleet.url, 1)).status))
    expect(statuses).toEqual(Array(6).fill(202))
  })

  test('Ctrl-C ends all of it', async () => {
    fleet.child.kill('SIGINT')
    expect(await fleet.exit).toBe(0)
    for (const { pid } of fleet.instances) expect(() => process.kill(pid, 0)).toThrow('ESRCH')
    expect(readdirSync(place)).toEqual([])
  })
})

describe.skipIf(!hasRedis)(`Valkey’s settings${redisFault}`, () => {
  test('a server takes them as they stand in the file', async () => {
    const [, ...flags] = valkey.command!.split(' ').map((word) => word.replaceAll('"', ''))
    expect(flags).toContain('noeviction')
    const redis = await startRedis({ flags })
    expect(await redis.command('CONFIG', 'GET', 'maxmemory')).toContain(String(2 ** 30))
    expect(await redis.command('CONFIG', 'GET', 'appendfsync')).toContain('everysec')
    await redis.close()
  })
})
