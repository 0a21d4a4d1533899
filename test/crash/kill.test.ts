/**
 * The server is killed (SIGKILL) at 10 seeded moments (`MILLRACE_THOROUGH=1`: 30, `MILLRACE_KILLS=100` for more) under load, on one data folder. What any client had received is a
 * prefix of what the log holds afterwards; every run ends once, is gone on with, or still waits for its client. The files of the runs and the tables
 * agree with the log.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import type { RunRow } from '../../src/part/log.ts'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import { agUiWire } from '../../src/wire/ag-ui/ag-ui.ts'
import { openaiWire } from '../../src/wire/openai/openai.ts'
import { partsWire } from '../../src/wire/parts/parts.ts'
import { textWire } from '../../src/wire/text/text.ts'
import { uiWire } from '../../src/wire/ui/ui.ts'
import type { Encoder } from '../../src/wire/wire.ts'
import { expectBeginning, fileText, logText, tablesOf } from '../support/agreement.ts'
import { grammarFaults, only } from '../support/engine.ts'
import { randomOf } from '../support/random.ts'
import { millrace, spawnServer, type ServerProcess } from '../support/server-process.ts'
import { often } from '../support/thorough.ts'
import { startUpstream, type Upstream, type UpstreamReply } from '../support/upstream.ts'

const kills = Number(process.env['MILLRACE_KILLS'] ?? often(30, 3))
const dir = mkdtempSync(join(tmpdir(), 'millrace-crash-'))
const data = join(dir, 'data')
const effects = join(dir, 'effects.txt')
const misfits: string[] = []
let upstream: Upstream
let server: ServerProcess

const yaml = (top: string, tools: string) => `${top}
workflow:
  - id: answer
    type: llm
    config: { model: "up:m", stream: true, retries: 0, tools: [${tools}] }
`
// Plain JavaScript and JSON Schema: the folder has no packages to import from.
const config = `
import { appendFileSync } from 'node:fs'
const parameters = { type: 'object', properties: { n: { type: 'number' } } }
const mark = async ({ n }, { runId, toolCallId }) => {
  appendFileSync(${JSON.stringify(effects)}, runId + ' ' + toolCallId + '\\n')
  await new Promise((resolve) => setTimeout(resolve, n))
  return { marked: toolCallId }
}
export default { tools: { mark: { parameters, execute: mark }, ask: { parameters } } }
`

/** Says the script that the user named, slowly; refuses what a strict provider would refuse. */
async function answer(reply: UpstreamReply): Promise<void> {
  const { messages } = reply.body as {
    messages: { role: string; content: unknown; tool_calls?: { id: string }[]; tool_call_id?: string }[]
  }
  const fault = misfit(messages)
  if (fault !== undefined) misfits.push(fault)
  const asked = JSON.stringify(messages.findLast(({ role }) => role === 'user')!.content)
  const results = messages.filter(({ role }) => role === 'tool').length
  const words = async (count: number) => {
    for (let i = 0; i < count; i++) {
      reply.say(`word${i} `)
      if (i % 3 === 0) await new Promise((resolve) => setTimeout(resolve, 2))
    }
  }
  await words(6)
  if (asked.includes('tools') && results < 3) {
    reply.call(`call_${results}`, 'mark', { n: 3 })
    reply.finish('tool_calls')
  } else if (asked.includes('ask') && results < 1) {
    reply.call('call_0', 'ask', { n: 1 })
    reply.finish('tool_calls')
  } else {
    await words(24)
    // Only the death of the server ends it.
    if (asked.includes('long')) await reply.left
    reply.finish()
  }
}

function misfit(
  messages: { role: string; tool_calls?: { id: string }[]; tool_call_id?: string }[],
): string | undefined {
  let due: string[] = []
  for (const { role, tool_calls = [], tool_call_id } of messages) {
    if (role === 'tool') {
      if (!due.includes(tool_call_id!)) return `${tool_call_id} was not asked`
      due = due.filter((id) => id !== tool_call_id)
    } else if (due.length > 0) return `${due.join()} without result`
    else due = tool_calls.map(({ id }) => id)
  }
  return due.length > 0 ? `${due.join()} without result` : undefined
}

beforeAll(async () => {
  const agents = join(dir, 'agents')
  mkdirSync(agents)
  writeFileSync(join(agents, 'plain.yaml'), yaml('', 'mark, ask'))
  writeFileSync(join(agents, 'keep.yaml'), yaml('recover: true', 'mark, ask'))
  writeFileSync(join(agents, 'millrace.config.mjs'), config)
  writeFileSync(effects, '')
  upstream = await startUpstream((reply) => answer(reply))
  await boot()
})
afterAll(async () => {
  await server?.kill()
  await upstream?.close()
  rmSync(dir, { recursive: true, force: true })
})

async function boot(): Promise<void> {
  server = await spawnServer(join(dir, 'agents'), data, '--log-files', '--endpoint', `up=${upstream.baseURL}`)
}

const json = { 'content-type': 'application/json' }
const messages = (content: string) => [{ id: 'm', role: 'user' as const, content }]

interface Protocol {
  path: (agent: string) => string
  body: (agentId: string, messages: object[]) => object
  /** Gives what a client gets of the log. */
  encoder: (say: string) => Encoder
}

const withAgent = (agentId: string, list: object[]) => ({ agentId, messages: list })
const protocols: Record<string, Protocol> = {
  text: { path: () => '/api/beddel/chat', body: withAgent, encoder: () => textWire.createEncoder() },
  ui: { path: () => '/api/chat', body: withAgent, encoder: () => uiWire.createEncoder() },
  openai: {
    path: () => '/v1/chat/completions',
    body: (model, list) => ({ model, messages: list, stream: true }),
    encoder: () => openaiWire.createEncoder({}, { model: 'plain' }),
  },
  'ag-ui': {
    path: (agent) => `/ag-ui/${agent}`,
    body: (_, list) => {
      const [threadId, runId] = [crypto.randomUUID(), crypto.randomUUID()]
      return { threadId, runId, messages: list, tools: [], context: [], state: {}, forwardedProps: {} }
    },
    encoder: (say) => agUiWire.createEncoder({}, { messages: messages(say) }),
  },
  events: {
    path: () => '/api/runs',
    body: (agentId, list) => ({ agentId, input: { messages: list } }),
    encoder: () => partsWire.createEncoder(),
  },
}

/** A client and all that it has received so far. */
interface Client {
  /** A protocol. */
  kind: string
  say: string
  run: string
  text: string
}

async function read(response: Response, client: Client, onChunk: () => void): Promise<void> {
  const decoder = new TextDecoder()
  for await (const chunk of response.body!) {
    client.text += decoder.decode(chunk, { stream: true })
    onChunk()
  }
}

/** Followed as NDJSON, or read as the clients of a protocol would. */
async function begin(
  clients: Client[],
  onChunk: () => void,
  kind: string,
  agentId: string,
  say: string,
): Promise<void> {
  const { path, body } = protocols[kind]!
  const posted = await fetch(server.url + path(agentId), {
    method: 'POST',
    headers: { ...json, ...(kind === 'ag-ui' && { accept: 'text/event-stream' }) },
    body: JSON.stringify(body(agentId, messages(say))),
  })
  expect(posted.ok, kind).toBe(true)
  const client: Client = { kind, say, run: posted.headers.get('x-millrace-run-id')!, text: '' }
  clients.push(client)
  if (kind !== 'events') return read(posted, client, onChunk)
  await posted.body?.cancel()
  await read(await fetch(`${server.url}/api/runs/${client.run}/events?follow=1`), client, onChunk)
}

async function stored(run: string): Promise<string> {
  const response = await fetch(`${server.url}/api/runs/${run}/events`)
  expect(response.status).toBe(200)
  return response.text()
}

const parse = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Entry)

async function expectPrefix({ kind, say, run, text }: Client): Promise<void> {
  const log = await stored(run)
  const encoder = protocols[kind]!.encoder(say)
  let frames = ''
  for (const entry of parse(log)) frames += encoder.encode(entry)
  const isPrefix =
    kind === 'ag-ui'
      ? joined(frames).startsWith(joined(text.slice(0, text.lastIndexOf('\n\n'))).replace(/"?\}*$/u, ''))
      : frames.startsWith(text)
  expect(isPrefix, `${run}: what the log does not give as ${kind}:\n${text.slice(-400)}`).toBe(true)
}

/** AG-UI sends deltas that were stored together as one: what says where one ends and the next begins is left out. */
const joined = (frames: string) =>
  frames.replaceAll(/"\}\n\ndata: \{"type":"(?:TEXT_MESSAGE_CONTENT|TOOL_CALL_ARGS)",[^{}]*?"delta":"/gu, '')

async function requestsOf(run: string): Promise<{ requestId: string }[]> {
  const response = await fetch(`${server.url}/api/runs/${run}/requests`)
  return ((await response.json()) as { requests: { requestId: string }[] }).requests
}

const reply = (run: string, requestId: string, output: unknown) =>
  fetch(`${server.url}/api/runs/${run}/requests/${requestId}`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ output }),
  })

async function ended(run: string): Promise<Entry[]> {
  const client: Client = { kind: 'events', say: '', run, text: '' }
  await read(await fetch(`${server.url}/api/runs/${run}/events?follow=1`), client, () => undefined)
  return parse(client.text)
}

describe('killed servers', () => {
  test(
    `${kills} kills under load lose nothing that a client saw, and nothing happens twice`,
    { timeout: Math.max(170_000, kills * 6000) },
    async () => {
      const next = randomOf(20260901)
      const kinds = ['ui', 'openai', 'text', 'ag-ui']
      const seen: Client[] = []
      const waiting: string[] = []
      let cut = 0
      let begun = 0
      let lines = 0
      for (let life = 0; life < kills; life++) {
        const clients: Client[] = []
        const fatal = Math.floor(next() * 50)
        const strike = Promise.withResolvers<void>()
        let chunks = 0
        const onChunk = () => {
          if (++chunks % 4 === 0) lines += wholeLines(clients).length
          if (chunks >= fatal) strike.resolve()
        }
        const load = [
          begin(clients, onChunk, 'events', 'plain', 'talk'),
          begin(clients, onChunk, kinds[life % kinds.length]!, 'plain', 'tools'),
          begin(clients, onChunk, 'events', 'keep', 'tools'),
          begin(clients, onChunk, life % 2 === 0 ? 'ag-ui' : 'text', 'keep', 'talk'),
          begin(clients, onChunk, 'ui', life % 2 === 0 ? 'keep' : 'plain', 'ask'),
          // One that a life before had asked is answered in this one, and may be cut off behind its answer.
          answerOne(waiting, next),
        ]
        // These are cut however fast the clients read: how slow the machine is does not matter.
        const long = [
          begin(clients, onChunk, 'events', 'plain', 'long'),
          begin(clients, onChunk, 'ui', 'plain', 'long'),
        ]
        // A broken connection is what is meant to happen.
        const settled = Promise.allSettled([...load, ...long])
        await Promise.race([strike.promise, Promise.allSettled(load)])
        await server.kill()
        await settled
        const files = clients.map(({ run }) => ({ run, text: fileText(data, run) }))
        expectJq(wholeLines(clients))
        begun += files.filter(({ text }) => text !== '' && !text.includes('run-end')).length
        cut += clients.filter(
          ({ kind, text }) => kind !== 'text' && text !== '' && !/run-end|\[DONE\]|RUN_FINISHED/u.test(text),
        ).length
        await boot()
        for (const client of clients) await expectPrefix(client)
        for (const { run, text } of files) expectBeginning(text, await stored(run))
        for (const { run } of clients) {
          const entries = parse(await stored(run))
          expect(grammarFaults(entries, true), run).toEqual([])
          const [start] = only(entries, 'run-start')
          const last = entries.at(-1)!
          if (last.type === 'suspend') waiting.push(run)
          else if (start!.agent === 'plain') {
            expect(last.type, run).toBe('run-end')
            expect(['interrupted', 'completed'], run).toContain(only(entries, 'run-end')[0]!.outcome)
          }
        }
        seen.push(...clients)
      }
      // Streams were cut in their middle, or this shows nothing.
      expect(cut).toBeGreaterThan(kills)
      expect(begun).toBeGreaterThan(kills / 3)
      expect(lines).toBeGreaterThan(kills)

      const { runs } = (await (await fetch(`${server.url}/api/runs?limit=1000`)).json()) as { runs: RunRow[] }
      expect(runs.length).toBeGreaterThan(kills * 3)
      const outcomes = new Map<string, number>()
      for (const { id, status, agent } of runs) {
        const entries = status === 'suspended' ? parse(await stored(id)) : await ended(id)
        expect(grammarFaults(entries, status === 'suspended'), id).toEqual([])
        const ends = only(entries, 'run-end')
        expect(ends, id).toHaveLength(status === 'suspended' ? 0 : 1)
        if (agent === 'keep' && ends.length > 0) expect(ends[0], id).toMatchObject({ outcome: 'completed' })
        const what = `${agent} ${ends[0]?.outcome ?? 'suspended'}${entries.some(({ type }) => type === 'step-reset') ? ', after a reset' : ''}`
        outcomes.set(what, (outcomes.get(what) ?? 0) + 1)
      }
      // What was cut off was seen in both kinds of agents.
      const ways = [...outcomes.keys()].join('; ')
      expect(ways).toContain('plain interrupted')
      expect(ways).toContain('keep completed, after a reset')
      for (const client of seen) await expectPrefix(client)

      const marks = readFileSync(effects, 'utf8').split('\n').filter(Boolean)
      expect(marks.length).toBeGreaterThan(kills)
      expect(new Set(marks).size).toBe(marks.length)
      expect(misfits).toEqual([])
      const verified = await millrace('verify', 'all', '--data', data)
      expect(verified.code, verified.stdout + verified.stderr.slice(-500)).toBe(0)
      await expectAgreement(runs.map(({ id }) => id))
    },
  )

  /** The lines of the files of these runs as they are now, each of them JSON; the last one of a file may not be whole yet. */
  function wholeLines(clients: readonly Client[]): string[] {
    return clients.flatMap(({ run }) => {
      const lines = fileText(data, run).split('\n').slice(0, -1)
      for (const line of lines) JSON.parse(line)
      return lines
    })
  }

  const hasJq = spawnSync('jq', ['--version']).status === 0

  /** `jq -c .`, where it is installed, reads each of them as one object. */
  function expectJq(lines: readonly string[]): void {
    if (!hasJq || lines.length === 0) return
    const { status, stdout, stderr } = spawnSync('jq', ['-c', '.'], { input: lines.join('\n'), encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual(lines.map((line) => JSON.parse(line) as unknown))
  }

  /** The files are the log, and the tables are those that it gives when they are built again. */
  async function expectAgreement(runs: string[]): Promise<void> {
    const late = sqliteStore(join(data, 'millrace.db'), { readOnly: true })
    for (const run of runs) {
      const log = await logText(late, run)
      await expect.poll(() => fileText(data, run) === log).toBe(true)
    }
    await late.close()
    await server.kill()
    const [file, copy] = [join(data, 'millrace.db'), join(dir, 'copy.db')]
    for (const ending of ['', '-wal']) cpSync(file + ending, copy + ending)
    const stores = [sqliteStore(file), sqliteStore(copy)] as const
    await stores[1].records!.reindex()
    const [kept, built] = [await tablesOf(stores[0], 'word3'), await tablesOf(stores[1], 'word3')]
    await Promise.all(stores.map((store) => store.close()))
    expect(kept).toEqual(built)
    await boot()
  }

  async function answerOne(waiting: string[], next: () => number): Promise<void> {
    const [run] = waiting.splice(Math.floor(next() * waiting.length), 1)
    if (run === undefined) return
    try {
      for (const { requestId } of await requestsOf(run)) await reply(run, requestId, 'yes')
    } catch {
      // Killed before it was answered: it still waits.
      waiting.push(run)
    }
  }

  test('asked in one life, answered 50 times at once in the next: the run goes on, once', async () => {
    const clients: Client[] = []
    await begin(clients, () => undefined, 'ui', 'plain', 'ask')
    const [{ run }] = clients as [Client]
    await server.kill()
    await boot()
    const [request] = await requestsOf(run)
    const answers = await Promise.all(Array.from({ length: 50 }, () => reply(run, request!.requestId, 'yes')))
    const bodies = (await Promise.all(answers.map((each) => each.json()))) as { duplicate: boolean }[]
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(bodies.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
    const entries = await ended(run)
    expect(grammarFaults(entries)).toEqual([])
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'completed' }])
    expect(only(entries, 'response')).toMatchObject([{ outcome: 'answered', answer: { output: 'yes' } }])
    expect(only(entries, 'resume')).toHaveLength(1)
    const contrary = await reply(run, request!.requestId, 'no')
    expect(contrary.status).toBe(409)
  })
})
