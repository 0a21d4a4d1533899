/**
 * What a server spends while 100 clients poll a task each every 500 ms, beside a bare handler that parses the same request and answers with as many
 * bytes. Run with `npm run bench -- mcp-tasks`.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { spawnServer } from '../test/support/server-process.ts'
import { startUpstream } from '../test/support/upstream.ts'
import { answerCalls } from './calls.ts'
import type { Child } from './child.ts'
import { readUsage } from './meter.ts'
import type { Options, Result, ResultRow, Sample } from './scenario.ts'

const tasks = 100
/** ms */
const interval = 500
const agent = 'workflow: [{ id: a, type: llm, config: { model: "up:m", stream: true } }]'
const version = '2026-07-28'

function post(url: string, method: string, params: Record<string, unknown>): Promise<Response> {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  }
  return fetch(`${url}/mcp`, {
    method: 'POST',
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      'mcp-protocol-version': version,
      'mcp-method': method,
      'mcp-name': String(params['name'] ?? params['taskId']),
    },
  })
}

const cpuOf = async (pid: number) => (await readUsage({ pid } as Child)).cpu

interface Subject {
  url: string
  pid: number
  ids: string[]
  /** Bytes of an answer. */
  size: number
}

/** The share of a core, and the times of the polls in ms. */
async function poll({ url, pid, ids }: Subject, seconds: number): Promise<Sample> {
  const times: number[] = []
  const end = performance.now() + seconds * 1000
  const [began, cpu] = [performance.now(), await cpuOf(pid)]
  const client = async (taskId: string, i: number) => {
    await sleep((i * interval) / ids.length)
    while (performance.now() < end) {
      const asked = performance.now()
      const answer = (await (await post(url, 'tasks/get', { taskId })).json()) as { result?: { status?: string } }
      if (answer.result?.status !== 'working') throw new Error(`a task is ${JSON.stringify(answer)}`)
      times.push(performance.now() - asked)
      await sleep(Math.max(0, interval - (performance.now() - asked)))
    }
  }
  await Promise.all(ids.map(client))
  const core = (((await cpuOf(pid)) - cpu) * 100_000) / (performance.now() - began)
  return { core, p50: times.toSorted((a, b) => a - b)[times.length >> 1]! }
}

const bare = `
const { createServer } = require('node:http')
const answer = JSON.stringify({ result: { status: 'working', padding: 'x'.repeat(Number(process.argv[1])) } })
createServer((request, response) => {
  let text = ''
  request.setEncoding('utf8').on('data', (piece) => (text += piece)).on('end', () => {
    JSON.parse(text)
    response.writeHead(200, { 'content-type': 'application/json' }).end(answer)
  })
}).listen(0, '127.0.0.1', function () { console.log(this.address().port) })`

async function startBare(size: number): Promise<{ url: string; child: ChildProcess }> {
  const child = spawn(process.execPath, ['-e', bare, String(size)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [port] = (await once(child.stdout!.setEncoding('utf8'), 'data')) as [string]
  return { url: `http://127.0.0.1:${port.trim()}`, child }
}

async function measure({ rounds = 3, seconds }: Options): Promise<Result[]> {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  mkdirSync(join(dir, 'agents'))
  writeFileSync(join(dir, 'agents', 'slow.yaml'), agent)
  const upstream = await startUpstream((reply) => reply.accept())
  const server = await spawnServer(join(dir, 'agents'), join(dir, 'data'), '--endpoint', `up=${upstream.baseURL}`)
  let other: ChildProcess | undefined
  const rows: ResultRow[] = [
    { name: 'bare', title: 'a bare node:http handler', samples: [] },
    { name: 'millrace', title: 'Millrace, tasks on SQLite', samples: [] },
  ]
  try {
    const started = Array.from({ length: tasks }, async (_, i) => {
      const answer = await post(server.url, 'tools/call', { name: 'slow', arguments: { message: `${i}` } })
      return ((await answer.json()) as { result: { taskId: string } }).result.taskId
    })
    const ids = await Promise.all(started)
    const size = (await (await post(server.url, 'tasks/get', { taskId: ids[0] })).text()).length
    const { url, child } = await startBare(size)
    other = child
    const subjects: Subject[] = [
      { url, pid: child.pid!, ids, size },
      { url: server.url, pid: server.pid, ids, size },
    ]
    for (let round = -1; round < rounds; round++) {
      for (const [i, subject] of subjects.entries()) {
        const sample = await poll(subject, round < 0 ? 2 : seconds)
        if (round >= 0) rows[i]!.samples.push(sample)
      }
    }
  } finally {
    other?.kill()
    await server.kill()
    await upstream.close()
    rmSync(dir, { recursive: true, force: true })
  }
  return [
    {
      scenario: 'mcp-tasks',
      title: `${tasks} tasks, each polled every ${interval} ms; medians of ${rounds} rounds of ${seconds} s`,
      reference: 'bare',
      columns: [
        { key: 'core', title: '% of a core', digits: 1, ratio: true },
        { key: 'p50', title: 'p50 ms of a poll', digits: 2 },
      ],
      rows,
      notes: [],
    },
  ]
}

answerCalls({ measure })
