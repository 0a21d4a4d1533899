/** Every protocol in which a client can go on with a run, for one that was recorded elsewhere: the server refuses, and nothing of it runs. */
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { only, until } from '../support/engine.ts'
import { agentThat, createStranger, ndjson, recordElsewhere, saying, tools, type asking } from '../support/foreign.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { connectSocket, runInput } from '../support/socket.ts'

const headers = { authorization: 'Bearer k-1', 'content-type': 'application/json' }
const threadId = 'thread_stranger'

interface Case {
  server: TestServer
  run: string
  requestId: string
}

/** A server with a key, and a run on it that was imported with the key, and that waits. Its agent is not the server's. */
async function imported(asks: keyof typeof asking, { edit = false, protocol = 'ui', yaml = '' } = {}) {
  const stranger = createStranger()
  const entries = await recordElsewhere(yaml || agentThat(asks, stranger.evil), asks, { protocol, threadId })
  const server = await startServer(
    { agents: { a: agentThat('client') }, scripts: { m: saying() }, tools: tools() },
    { apiKey: 'k-1', edit },
  )
  onTestFinished(() => server.close())
  const body = ndjson(entries)
  const type = { 'content-type': 'application/x-ndjson' }
  const response = await fetch(`${server.url}/api/runs/import`, {
    method: 'POST',
    body,
    headers: { ...headers, ...type },
  })
  expect(response.status).toBe(201)
  const { id: run } = (await response.json()) as { id: string }
  return { server, run, requestId: only(entries, 'request')[0]!.requestId, entries, stranger }
}

const post = ({ server }: Case, path: string, body: object) => server.post(path, body, { headers })
const said = async (response: Response) => {
  const { error } = (await response.json()) as { error: { code: string } }
  return `${response.status} ${error.code}`
}
const call = (part: object) => [
  { id: 'u', role: 'user', parts: [{ type: 'text', text: 'Hi' }] },
  { id: 'm', role: 'assistant', parts: [{ toolCallId: 'c1', input: {}, ...part }] },
]

const doors: Record<string, [asks: keyof typeof asking, goOn: (given: Case) => Promise<string>, answer?: string]> = {
  'a fork': ['client', async (given) => said(await post(given, `/api/runs/${given.run}/fork`, { at: 1 }))],
  'a fork with trust from who may not edit agents': [
    'client',
    async (given) => said(await post(given, `/api/runs/${given.run}/fork`, { at: 1, trust: true })),
    '403 forbidden',
  ],
  'an answer': [
    'client',
    async (given) => said(await post(given, `/api/runs/${given.run}/requests/${given.requestId}`, { output: 7 })),
  ],
  'an answer with trust from who may not edit agents': [
    'client',
    async (given) =>
      said(await post(given, `/api/runs/${given.run}/requests/${given.requestId}`, { output: 7, trust: true })),
    '403 forbidden',
  ],
  'an approval, as OpenAI clients give it': [
    'approval',
    async (given) => said(await post(given, `/api/runs/${given.run}/requests/${given.requestId}`, { approved: true })),
  ],
  'the result of a tool in a chat': [
    'client',
    async (given) => {
      const messages = call({ type: 'tool-pick', state: 'output-available', output: 7 })
      return said(await post(given, '/api/chat', { agentId: 'a', id: threadId, messages }))
    },
  ],
  'an approval in a chat': [
    'approval',
    async (given) => {
      const approval = { id: given.requestId, approved: true }
      const messages = call({ type: 'tool-pay', state: 'approval-responded', approval })
      return said(await post(given, '/api/chat', { agentId: 'a', id: threadId, messages }))
    },
  ],
  'the result of a tool in a plain chat': [
    'client',
    async (given) => {
      const messages = call({ type: 'tool-pick', state: 'output-available', output: 7 })
      return said(await post(given, '/api/beddel/chat', { agentId: 'a', id: threadId, messages }))
    },
  ],
  'the result of a tool over AG-UI': [
    'client',
    async (given) => {
      const messages = [{ id: 'm', role: 'tool', toolCallId: 'c1', content: '7' }]
      return said(await post(given, '/ag-ui/a', runInput({ threadId, messages })))
    },
  ],
  'an interrupt of AG-UI': [
    'approval',
    async (given) => {
      const resume = [{ interruptId: given.requestId, status: 'resolved', payload: { approved: true } }]
      return said(await post(given, '/ag-ui/a', runInput({ threadId, resume, messages: [] })))
    },
  ],
  'the result of a tool over Socket.IO': [
    'client',
    async ({ server, run }) => {
      const { send } = await connectSocket(server.url, 'websocket', { auth: { token: 'k-1' } })
      await send('watch_run', { runId: run })
      const { error } = await send('tool_result', { messageId: 'm', role: 'tool', toolCallId: 'c1', content: '7' })
      return `403 ${error?.code}`
    },
  ],
  'a request over Socket.IO': [
    'client',
    async ({ server, run }) => {
      const { send } = await connectSocket(server.url, 'websocket', { auth: { token: 'k-1' } })
      const ack = await send('request', { id: '1', method: 'POST', path: `/api/runs/${run}/fork`, body: { at: 1 } })
      return `${String(ack['status'])} ${(JSON.parse(ack['body'] as string) as { error: { code: string } }).error.code}`
    },
  ],
}

describe('runs of another server', () => {
  test.each(Object.entries(doors))('%s is refused', async (_, [asks, goOn, answer = '403 foreign-run']) => {
    const given = await imported(asks, { protocol: asks === 'client' ? 'ui' : 'ag-ui' })
    const { server, run, stranger, entries } = given
    const before = (await server.store.runs.get(run))!
    expect(before).toMatchObject({ status: 'suspended', foreign: entries.length })
    expect(await goOn(given)).toBe(answer)
    expect(await server.store.runs.get(run)).toEqual(before)
    expect(await server.store.runs.list({})).toHaveLength(1)
    expect(stranger.hasRun()).toBe(false)
  })

  test('a new message in its thread stops it, and is answered by the agent that it names', async () => {
    const given = await imported('client')
    const messages = [{ id: 'u2', role: 'user', parts: [{ type: 'text', text: 'Hello' }] }]
    const response = await post(given, '/api/beddel/chat', { agentId: 'a', id: threadId, messages })
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('Done.')])
    await until(given.server.store, given.run, ({ type }) => type === 'run-end')
    expect(given.stranger.hasRun()).toBe(false)
  })

  /** What a client says, whether it may edit agents, and whether the stranger's program runs then. */
  test.each<[string, object, { edit?: boolean; yaml?: string }, boolean]>([
    ['nothing, with the text of an agent here', {}, { yaml: agentThat('client') }, false],
    ['the name of an agent here', { agentId: 'a' }, {}, false],
    ['trust, and may edit agents', { trust: true }, { edit: true }, true],
    ['the name of an agent here, and trust', { agentId: 'a', trust: true }, { edit: true }, false],
  ])('a fork and an answer of who says %s go on', async (_, consent, how, runs) => {
    const goesOn = async (given: Case & { entries: Entry[] }, isFork: boolean) => {
      const { server, run, requestId, entries } = given
      const forked = isFork ? await post(given, `/api/runs/${run}/fork`, { at: entries.length, ...consent }) : undefined
      const id = forked === undefined ? run : ((await forked.json()) as { id: string }).id
      const answer = { output: 7, ...(isFork ? {} : consent) }
      expect((await post(given, `/api/runs/${id}/requests/${requestId}`, answer)).status).toBe(200)
      await until(server.store, id, ({ type }) => type === 'run-end')
      const listed = await (await fetch(`${server.url}/api/runs?idPrefix=${id}`, { headers })).json()
      expect(listed).toMatchObject({ runs: [{ id, foreign: entries.length }] })
    }
    for (const isFork of [true, false]) {
      const given = await imported('client', how)
      await goesOn(given, isFork)
      expect(given.stranger.hasRun()).toBe(runs)
    }
  })

  test.each([1, 'yes', null])('trust must be true or false, not %j', async (trust) => {
    const given = await imported('client', { edit: true })
    const { run, requestId, stranger } = given
    for (const [path, body] of [
      ['fork', { at: 1 }],
      [`requests/${requestId}`, { output: 7 }],
    ] as const) {
      const response = await post(given, `/api/runs/${run}/${path}`, { ...body, trust })
      expect(response.status).toBe(400)
    }
    expect(stranger.hasRun()).toBe(false)
  })

  test('what it would set to work is told, up to an entry, in lines in which nothing can disguise itself', async () => {
    const yaml = agentThat(
      'approval',
      '{ id: evil, type: cli-agent, config: { cli: claude, prompt: x, command: [sh, -c, "a\\u202Eb\\u0007"] } }',
    )
    const { server, run } = await imported('approval', { yaml })
    const ask = async (query = '', id = run) =>
      (await fetch(`${server.url}/api/runs/${id}/programs${query}`, { headers })).json() as Promise<object>
    const tool = 'line 2, step first: lets its model call the tools pay'
    const program = 'line 3, step evil: starts the program sh -c "a\\u202eb\\u0007" in the folder .'
    const call = 'a call of the recording that has no result yet: pay with {}'
    expect(await ask()).toEqual({ foreign: true, programs: [tool, program, call] })
    expect(await ask('?at=1')).toEqual({ foreign: true, programs: [tool, program] })
    expect(await ask('?own=0')).toEqual({ foreign: true, programs: [call] })
    expect(await ask('?at=x')).toMatchObject({ error: { code: 'bad-input' } })
    expect(await ask('', 'none')).toMatchObject({ error: { code: 'unknown-run' } })
  })
})
