/** A fleet of real processes on one Redis, with one model server and what tests ask of them. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Entry } from '../../src/part/entry.ts'
import type { Store } from '../../src/part/log.ts'
import { redisStore } from '../../src/store/redis/redis-store.ts'
import { entriesOf } from '../support/engine.ts'
import { freshPrefix, type RedisServer } from '../support/redis.ts'
import { startUpstream, type Upstream, type UpstreamReply } from '../support/upstream.ts'
import type { InstanceOptions } from './instance.ts'

export interface Instance {
  url: string
  signal(name: NodeJS.Signals): void
  /** SIGKILL. Resolves when the process is gone. */
  kill(): Promise<void>
  /** SIGTERM. Resolves with its exit code. */
  stop(): Promise<number | null>
  isGone(): boolean
  stderr(): string
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>
}

export interface Fleet {
  upstream: Upstream
  /** Reads what the instances write, as a process that runs nothing. */
  store: Store
  /** Of the keys of this fleet. */
  prefix: string
  start(options?: Partial<InstanceOptions>): Promise<Instance>
  /** What the tools did, as `<run> <tool> <what>`. */
  effects(): string[]
  close(): Promise<void>
}

const program = join(import.meta.dirname, 'instance.ts')
const cache = resolve('node_modules/.cache/fleet')
const exited = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null

export async function startFleet(
  redis: Pick<RedisServer, 'url'>,
  agents: Record<string, string>,
  answer: (reply: UpstreamReply, n: number) => unknown,
): Promise<Fleet> {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-fleet-'))
  const effects = join(dir, 'effects.txt')
  writeFileSync(effects, '')
  const upstream = await startUpstream(answer)
  const prefix = freshPrefix()
  const url = `${redis.url}?prefix=${prefix}`
  const store = await redisStore(url)
  const children: ChildProcess[] = []

  async function start(options: Partial<InstanceOptions> = {}): Promise<Instance> {
    const given = { baseURL: upstream.baseURL, effects, agents, tools: ['buy'], graceMs: 5000, ...options }
    const child = spawn(process.execPath, ['--no-warnings', program, url, JSON.stringify(given)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // Starts in a third of the time.
      env: { ...process.env, NODE_COMPILE_CACHE: cache },
    })
    children.push(child)
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk))
    const gone = once(child, 'exit')
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const first = await Promise.race([lines.next(), gone.then(() => undefined)])
    if (first === undefined || first.done) throw new Error(`the instance did not start: ${stderr}`)
    const said = JSON.parse(first.value) as { url: string }
    return {
      url: said.url,
      stderr: () => stderr,
      isGone: () => exited(child),
      signal: (name) => void child.kill(name),
      async kill() {
        child.kill('SIGKILL')
        if (!exited(child)) await gone
      },
      async stop() {
        child.kill('SIGTERM')
        if (!exited(child)) await gone
        return child.exitCode
      },
      post: (path, body = {}, headers = {}) =>
        fetch(said.url + path, {
          method: 'POST',
          body: JSON.stringify(body),
          headers: { 'content-type': 'application/json', ...headers },
        }),
    }
  }

  return {
    upstream,
    store,
    prefix,
    start,
    effects: () => readFileSync(effects, 'utf8').split('\n').filter(Boolean),
    async close() {
      const living = children.filter((child) => !exited(child))
      const gone = living.map((child) => once(child, 'exit'))
      for (const child of living) child.kill('SIGKILL')
      await Promise.all(gone)
      await store.close()
      await upstream.close()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** Starts a run that needs no reader. */
export async function startRun(instance: Instance, agentId: string, text: string, more: object = {}): Promise<string> {
  const input = { messages: [{ id: text, role: 'user', parts: [{ type: 'text', text }] }] }
  const response = await instance.post('/api/runs', { agentId, input, ...more })
  if (response.status !== 202) throw new Error(`${response.status} ${await response.text()}`)
  return ((await response.json()) as { id: string }).id
}

export interface Followed {
  /** What has come so far: the entries as they were sent. */
  lines: string[]
  /** Rejects if the connection breaks before the end of the run. */
  end: Promise<void>
}

/** Follows the log of a run at an instance, from an entry on. */
export function followRun(instance: Instance, run: string, lines: string[] = []): Followed {
  const read = async () => {
    const after = lines.length === 0 ? 0 : (JSON.parse(lines.at(-1)!) as Entry).seq
    const response = await fetch(`${instance.url}/api/runs/${run}/events?after=${after}`, {
      headers: { accept: 'text/event-stream' },
    })
    const decoder = new TextDecoder()
    let text = ''
    for await (const chunk of response.body!) {
      text += decoder.decode(chunk, { stream: true })
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const data = /^data: (.*)$/mu.exec(text.slice(0, end))?.[1]
        text = text.slice(end + 2)
        if (data === undefined) continue
        lines.push(data)
        if ((JSON.parse(data) as Entry).type === 'run-end') return
      }
    }
    throw new Error('the connection broke')
  }
  const end = read()
  end.catch(() => undefined)
  return { lines, end }
}

/** The entries of a run that has ended. Throws what is wrong with them: a gap, two ends, what the grammar forbids. */
export async function endedRun(store: Store, run: string): Promise<Entry[]> {
  for await (const _ of store.log.read(run, { signal: AbortSignal.timeout(20_000) }));
  const entries = await entriesOf(store, run)
  if (entries.at(-1)?.type !== 'run-end') throw new Error(`run ${run} has no end: ${entries.at(-1)?.type}`)
  return entries
}

export const count = (entries: readonly Entry[], type: Entry['type']) =>
  entries.filter((each) => each.type === type).length

/** Resolves with the first entry that matches. */
export async function entryOf(store: Store, run: string, matches: (entry: Entry) => boolean): Promise<Entry> {
  for await (const batch of store.log.read(run, { signal: AbortSignal.timeout(20_000) })) {
    const found = batch.find(matches)
    if (found !== undefined) return found
  }
  throw new Error(`run ${run} has no such entry`)
}
