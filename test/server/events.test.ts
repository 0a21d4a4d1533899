/** `GET /api/runs/:id/events`: after any entry, exactly the rest. */
import { afterEach, describe, expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import {
  createScriptedModel,
  finish,
  latch,
  reasoning,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, grammarFaults, until } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { parseSse } from '../sse.ts'

let server: TestServer
afterEach(() => server.close())

const user = [{ role: 'user', content: 'Hi' }]
const add = { parameters: { type: 'object', properties: {} }, execute: () => 3 }

async function start(...script: ScriptStep[][]): Promise<string> {
  server = await startServer({
    agents: { a: agent('tools: [add]') },
    tools: { add },
    scripts: { m: createScriptedModel(script) },
  })
  const response = await server.post('/api/runs', { agentId: 'a', input: { messages: user } })
  return ((await response.json()) as { id: string }).id
}

/** The ways to ask for what comes after entry k, each given back as entries. */
const ways: Record<string, (run: string, k: number, types?: string) => Promise<Entry[]>> = {
  'SSE, Last-Event-ID': (run, k, types) => sse(run, query({ types }), { 'last-event-id': String(k) }),
  'SSE, after, with its run': (run, k, types) => sse(run, query({ after: `${run}~${k}`, types })),
  'NDJSON, snapshot': (run, k, types) => ndjson(run, query({ after: k, types })),
  'NDJSON, follow': (run, k, types) => ndjson(run, query({ after: k, types, follow: 1 })),
}

function query(params: Record<string, string | number | undefined>): string {
  const given = Object.entries(params).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]]))
  return `?${new URLSearchParams(Object.fromEntries(given) as Record<string, string>)}`
}

async function events(run: string, search: string, headers: Record<string, string>): Promise<Response> {
  return fetch(`${server.url}/api/runs/${run}/events${search}`, { headers })
}

async function sse(run: string, search: string, headers: Record<string, string> = {}): Promise<Entry[]> {
  const response = await events(run, search, { accept: 'text/event-stream', ...headers })
  if (response.status === 204) return []
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  return toEntries(new Uint8Array(await response.arrayBuffer()))
}

function toEntries(...pieces: Uint8Array[]): Entry[] {
  return parseSse(...pieces).map(({ id, data }) => {
    const entry = JSON.parse(data) as Entry
    expect(id).toBe(String(entry.seq))
    return entry
  })
}

async function ndjson(run: string, search: string): Promise<Entry[]> {
  const response = await events(run, search, { accept: 'application/x-ndjson' })
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('application/x-ndjson')
  return lines(await response.text())
}

function lines(body: string): Entry[] {
  return body.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Entry]))
}

const rich = [
  [reasoning('Hm', 'm'), text('Let ', 'me ', 'sée \u{1f600}. '), toolCall('c1', 'add', { a: 1 }), finish('tool-calls')],
  [text('It ', 'is ', '3.'), finish()],
]

describe('events of a run', () => {
  test.each(Object.entries(ways))('a run that has ended, %s: after every k exactly the rest', async (_, ask) => {
    const run = await start(...rich)
    await until(server.store, run, ({ type }) => type === 'run-end')
    const all = await entriesOf(server.store, run)
    expect(all.length).toBeGreaterThan(25)
    for (let k = 0; k <= all.length; k++) expect(await ask(run, k)).toEqual(all.slice(k))
  })

  test.each(Object.entries(ways))('only some types, %s: the rest without the others', async (_, ask) => {
    const run = await start(...rich)
    await until(server.store, run, ({ type }) => type === 'run-end')
    const all = await entriesOf(server.store, run)
    for (const types of ['text-delta', 'tool-call,tool-result', 'run-end', 'run-start', 'suspend']) {
      for (let k = 0; k <= all.length; k += 3) {
        expect(await ask(run, k, types)).toEqual(all.slice(k).filter(({ type }) => types.split(',').includes(type)))
      }
    }
  })

  test('a live run: a snapshot ends with what is stored, at every k', async () => {
    const gate = latch()
    const run = await start([text('a', 'b', 'c'), gate, text('d'), finish()])
    await gate.reached
    await until(server.store, run, ({ type }) => type === 'text-end')
    const stored = await entriesOf(server.store, run)
    for (let k = 0; k <= stored.length; k++) expect(await ndjson(run, query({ after: k }))).toEqual(stored.slice(k))
    expect(stored.at(-1)!.type).not.toBe('run-end')
    gate.open()
  })

  test('fifty readers at different places of one live run all get exactly the rest', async () => {
    const gates = [latch(), latch()]
    const deltas = (name: string) => Array.from({ length: 30 }, (_, i) => `${name}${i} `)
    const run = await start([text(...deltas('x')), gates[0]!, text(...deltas('y')), gates[1]!, text('z'), finish()])
    await gates[0]!.reached
    const stored = await until(server.store, run, ({ type }) => type === 'text-end')
    const readers = Array.from({ length: 50 }, (_, i) => {
      const k = Math.round((i / 49) * stored.seq)
      const follow = [ways['SSE, Last-Event-ID']!, ways['SSE, after, with its run']!, ways['NDJSON, follow']!]
      return { k, rest: follow[i % 3]!(run, k) }
    })
    gates[0]!.open()
    await gates[1]!.reached
    gates[1]!.open()
    const rests = await Promise.all(readers.map(({ rest }) => rest))
    const all = await entriesOf(server.store, run)
    for (const [i, { k }] of readers.entries()) expect(rests[i]).toEqual(all.slice(k))
  })

  test('readers that leave anywhere and come back with Last-Event-ID miss nothing and get nothing twice', async () => {
    const gate = latch()
    const run = await start([text(...Array.from({ length: 40 }, (_, i) => `${i} `)), gate, text('end'), finish()])
    await gate.reached
    const under = new Set<number>()
    const readers = Array.from({ length: 10 }, async (_, reader) => {
      const got: Entry[] = []
      for (let round = 1; ; round++) {
        // The model goes on when all of them are in the middle of it.
        if (round === 3 && under.add(reader).size === 10) gate.open()
        const lastSeen = String(got.at(-1)?.seq ?? 0)
        const leave = new AbortController()
        const response = await fetch(`${server.url}/api/runs/${run}/events`, {
          headers: { accept: 'text/event-stream', 'last-event-id': lastSeen },
          signal: leave.signal,
        })
        let body = ''
        const decoder = new TextDecoder()
        for await (const piece of response.body!) {
          body += decoder.decode(piece, { stream: true })
          // What the client has understood: whole frames only, and only some of them before it leaves.
          const frames = body.slice(0, body.lastIndexOf('\n\n') + 2)
          const entries = toEntries(new TextEncoder().encode(frames)).slice(0, 3 + reader)
          const done = entries.at(-1)?.type === 'run-end'
          if (entries.length < 3 + reader && !done) continue
          got.push(...entries)
          break
        }
        leave.abort()
        if (got.at(-1)?.type === 'run-end') return got
      }
    })
    for (const got of await Promise.all(readers)) expect(got).toEqual(await entriesOf(server.store, run))
  })

  test('an EventSource that has seen the end is told not to come back', async () => {
    const run = await start([text('a'), finish()])
    const { seq } = await until(server.store, run, ({ type }) => type === 'run-end')
    const response = await events(run, '', { accept: 'text/event-stream', 'last-event-id': String(seq) })
    expect(response.status).toBe(204)
  })

  test('a cursor that is none, or beyond the log, is refused; an unknown run is not found', async () => {
    const run = await start([text('a'), finish()])
    const { seq } = await until(server.store, run, ({ type }) => type === 'run-end')
    const refusals: [string, Record<string, string>, number, string][] = [
      [query({ after: seq + 1 }), {}, 400, `after must be at most ${seq}`],
      ['', { accept: 'text/event-stream', 'last-event-id': String(seq + 1) }, 400, `after must be at most ${seq}`],
      [query({ after: -1 }), {}, 400, 'after must be a whole number'],
      [query({ after: '1e0' }), {}, 400, 'after must be a whole number'],
      [query({ after: `${run}~${seq + 1}` }), {}, 400, `after must be at most ${seq}`],
      [query({ after: `${run}~` }), {}, 400, 'after must be a whole number'],
      [query({ after: 'run_other~1' }), {}, 400, `after must be a position of run ${run}, not one of run_other.`],
      ['', { accept: 'text/event-stream', 'last-event-id': 'run_other~1' }, 400, 'not one of run_other.'],
      [query({ after: '~1' }), {}, 400, 'after must be a position of run'],
      [query({ after: '' }), {}, 400, 'after must be a whole number'],
      [query({ after: '99999999999999999999' }), {}, 400, 'after must be a whole number'],
      ['', { accept: 'text/event-stream', 'last-event-id': 'x' }, 400, 'after must be a whole number'],
      [
        query({ afer: 1 }),
        {},
        400,
        'Unknown parameter "afer" (did you mean "after"?). Known: after, types, follow, before, limit, merge, step, cut.',
      ],
      [query({ follow: 'yes' }), {}, 400, 'follow must be'],
      [query({ follow: '2' }), {}, 400, 'follow must be 1 or 0.'],
      [
        query({ types: 'run-end,run-strat' }),
        {},
        400,
        'a list of part types, and "run-strat" is not one (did you mean "run-start"?)',
      ],
      [query({ types: 'x'.repeat(2001) }), {}, 400, 'types must be at most 2000 characters long.'],
    ]
    for (const [search, headers, status, message] of refusals) {
      const response = await events(run, search, headers)
      expect(response.status).toBe(status)
      expect(await response.json()).toMatchObject({
        error: { code: 'bad-input', message: expect.stringContaining(message) },
      })
    }
    for (const accept of ['application/x-ndjson', 'text/event-stream']) {
      const response = await events('run_none', '', { accept })
      expect(response.status).toBe(404)
      expect(await response.json()).toMatchObject({ error: { code: 'unknown-run' } })
    }
  })

  test('one stream follows a run across its suspension', async () => {
    server = await startServer({
      agents: { a: agent('tools: [ask]') },
      tools: { ask: { parameters: { type: 'object', properties: {} } } },
      scripts: {
        m: createScriptedModel([
          [toolCall('c1', 'ask'), finish('tool-calls')],
          [text('Thanks'), finish()],
        ]),
      },
    })
    const started = await server.post('/api/runs', { agentId: 'a', input: { messages: user } })
    const { id } = (await started.json()) as { id: string }
    const [followed, tailed] = [sse(id, ''), ndjson(id, query({ follow: 1, types: 'run-end' }))]
    await until(server.store, id, ({ type }) => type === 'suspend')
    const { requests } = (await (await fetch(`${server.url}/api/runs/${id}/requests`)).json()) as {
      requests: { requestId: string }[]
    }
    const path = `/api/runs/${id}/requests/${encodeURIComponent(requests[0]!.requestId)}`
    expect((await server.post(path, { output: 42 })).status).toBe(200)
    const all = await followed
    expect(all).toEqual(await entriesOf(server.store, id))
    expect(grammarFaults(all)).toEqual([])
    expect((await tailed).map(({ type }) => type)).toEqual(['run-end'])
  })
})
