/** The pack `examples/dify`, against a server that plays the frames which Dify's documents describe. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createThinkSplitter, readEvents } from '../../examples/dify/millrace-pack-dify/events.ts'
import { createDify } from '../../examples/dify/millrace-pack-dify/index.ts'
import { folder, ran } from '../support/cli.ts'
import { entriesOf, until } from '../support/engine.ts'
import { readBody, startServer, type TestServer } from '../support/server.ts'

type Frame = Record<string, unknown>
interface Asked {
  method: string
  path: string
  body: Record<string, any>
}
type Play = (asked: Asked, response: ServerResponse) => unknown

const key = 'app-a-key-of-dify'
const ids = { task_id: 'task-1', workflow_run_id: 'run-1' }
const frame = (event: string, rest: Frame = {}) => `data: ${JSON.stringify({ event, ...ids, ...rest })}\n\n`
const chat = (event: string, rest: Frame = {}) => frame(event, { conversation_id: 'talk-1', ...rest })
const ping = 'event: ping\n\n'
const node = { id: 'n1', node_id: '17', node_type: 'llm', title: 'Think' }
const succeeded = (outputs: Frame) =>
  frame('workflow_finished', { data: { status: 'succeeded', outputs, total_tokens: 9 } })
const usage = { prompt_tokens: 5, completion_tokens: 4, total_tokens: 9, total_price: '0.0021', currency: 'USD' }

async function dify(play: Play) {
  const asked: Asked[] = []
  const server = createServer({ noDelay: true }, async (request: IncomingMessage, response) => {
    let text = ''
    for await (const piece of request.setEncoding('utf8')) text += piece
    expect(request.headers.authorization).toBe(`Bearer ${key}`)
    const one = { method: request.method!, path: request.url!, body: text === '' ? {} : JSON.parse(text) }
    asked.push(one)
    if (/\/stop$|^\/form\//u.test(one.path)) return response.end('{"result":"success"}')
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    await play(one, response)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const chatAgent = (more = '') =>
  `workflow: [{ id: a, type: dify, config: { query: "$input.messages", stream: true${more} } }]\n`
const workflowAgent = 'workflow: [{ id: a, type: dify, config: { inputs: "$input" }, result: done }]\nreturn: "$done"\n'
const agents = {
  chat: chatAgent(),
  workflow: workflowAgent,
  asking: 'workflow: [{ id: a, type: dify, config: { stream: true } }]\n',
}

async function start(url: string, { dir = folder(), keep = false, close = true } = {}) {
  const environment = { DIFY_API_URL: url, DIFY_API_KEY: key, DIFY_STATE: join(dir, 'dify') }
  const server = await startServer({ agents, steps: { dify: createDify(environment) }, dir, keep })
  if (close) onTestFinished(() => server.close())
  return server
}
const say = (server: TestServer, text: string, more = {}) =>
  server.post('/api/beddel/chat', { agentId: 'chat', messages: [{ role: 'user', content: text }], ...more })

async function run(server: TestServer, agent: string, input: Record<string, unknown> = {}) {
  const started = await server.runtime.start(agent, input)
  return { ...(await started.result), id: started.id, entries: await entriesOf(server.store, started.id) }
}
const messages = [{ role: 'user', content: 'Hi' }]
const dataOf = (entries: Awaited<ReturnType<typeof entriesOf>>) =>
  entries.flatMap((entry) => (entry.type === 'data' ? [[entry.name, entry.data]] : []))

const talk = [
  chat('workflow_started', { data: { id: 'run-1' } }),
  chat('node_started', { data: node }),
  ping,
  chat('message', { answer: '<think>hm' }),
  chat('message', { answer: '…</think>Grü' }),
  chat('an_event_of_tomorrow', { data: null }),
  chat('message', { answer: 'ße 🌍' }),
  chat('node_finished', {
    data: { ...node, status: 'succeeded', outputs: {}, execution_metadata: { total_tokens: 9 } },
  }),
  chat('workflow_finished', { data: { status: 'succeeded', outputs: { answer: 'Grüße 🌍' } } }),
  chat('message_end', {
    metadata: { usage, retriever_resources: [{ segment_id: 's1', document_name: 'Greetings' }] },
  }),
].join('')

describe('the reader', () => {
  test('events are the same wherever the bytes are cut', async () => {
    const bytes = Buffer.from(talk)
    const read = async (...pieces: Uint8Array[]) => {
      const events = []
      for await (const event of readEvents(pieces.values() as never)) events.push(event)
      return events
    }
    const whole = await read(bytes)
    expect(whole).toHaveLength(9)
    for (let i = 0; i <= bytes.length; i++) expect(await read(bytes.subarray(0, i), bytes.subarray(i))).toEqual(whole)
    expect(await read(...Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(whole)
  })

  test('lines that are no events are skipped', async () => {
    const text = 'data: {"event":\n: comment\ndata: null\ndata: 7\r\ndata: {"event":"a"}\r\n\ndata:{"event":"b"}'
    const events = []
    for await (const { event } of readEvents([Buffer.from(text)].values() as never)) events.push(event)
    expect(events).toEqual(['a', 'b'])
  })

  test('thinking is separated from text wherever it is cut', () => {
    const text = 'a < b<think>x <y</think>c<think></think><thin'
    for (let i = 0; i <= text.length; i++) {
      const split = createThinkSplitter()
      const all = [split(text.slice(0, i)), split(text.slice(i)), split()]
      expect(all.map((each) => each.text).join('')).toBe('a < bc<thin')
      expect(all.map((each) => each.thinking).join('')).toBe('x <y')
    }
  })
})

describe('a chat app', () => {
  test('its text is the answer, byte by byte; nodes, thinking, sources and usage are told beside it', async () => {
    const { asked, url } = await dify(async (_, response) => {
      for (const byte of Buffer.from(talk))
        await new Promise<void>((done) => response.write(Uint8Array.of(byte), () => done()))
      response.end()
    })
    const server = await start(url)
    const { entries, outcome } = await run(server, 'chat', { messages })
    expect(outcome).toBe('completed')
    expect(entries.flatMap((entry) => (entry.type === 'text-delta' ? [entry.delta] : []))).toEqual(['Grü', 'ße 🌍'])
    expect(dataOf(entries)).toEqual([
      ['dify-node', { title: 'Think', type: 'llm', status: 'running' }],
      ['dify-thinking', 'hm'],
      ['dify-thinking', '…'],
      ['dify-node', { title: 'Think', type: 'llm', status: 'succeeded', outputs: {}, tokens: 9 }],
      ['dify-usage', { inputTokens: 5, outputTokens: 4, totalTokens: 9, cost: 0.0021 }],
    ])
    expect(entries.find(({ type }) => type === 'source')).toMatchObject({ id: 's1', title: 'Greetings' })
    expect(asked).toMatchObject([
      { path: '/chat-messages', body: { query: 'Hi', inputs: {}, response_mode: 'streaming', conversation_id: '' } },
    ])
    expect(JSON.stringify(entries)).not.toContain(key)
  })

  test('text is sent as it comes', async () => {
    let goOn = () => {}
    const { url } = await dify((_, response) => {
      response.write(chat('message', { answer: 'One' }))
      goOn = () => response.end(chat('message', { answer: ', two' }) + chat('message_end'))
    })
    const body = readBody(await say(await start(url), 'Count'))
    await body.until('One')
    goOn()
    expect(await body.rest()).toBe('One, two')
  })

  test('the next message of a thread continues the conversation', async () => {
    const { asked, url } = await dify((_, response) => response.end(talk))
    const server = await start(url)
    for (const threadId of ['t', 't', 'another'])
      await (
        await server.runtime.start('chat', { messages }, { threadId })
      ).result
    expect(asked.map(({ body }) => body['conversation_id'])).toEqual(['', 'talk-1', ''])
  })

  test('tools of an agent app are told', async () => {
    const thought = { id: 'th1', tool: 'clock', tool_input: '{}', observation: '12:00', thought: 'I look' }
    const { url } = await dify((_, response) =>
      response.end(
        chat('agent_thought', thought) +
          chat('agent_message', { answer: 'Noon' }) +
          chat('message_end', { metadata: { usage: { ...usage, currency: 'RMB' } } }),
      ),
    )
    const { entries } = await run(await start(url), 'chat', { messages })
    expect(dataOf(entries)).toEqual([
      ['dify-tool', { tool: 'clock', input: '{}', output: '12:00' }],
      ['dify-usage', { inputTokens: 5, outputTokens: 4, totalTokens: 9 }],
    ])
  })

  test('text that is withdrawn after it was sent fails the answer, and the app is stopped', async () => {
    const { asked, url } = await dify((_, response) =>
      response.write(chat('message', { answer: 'Bad' }) + chat('message_replace', { answer: 'Sorry' })),
    )
    const { error, entries } = await run(await start(url), 'chat', { messages })
    expect(error).toMatchObject({ code: 'dify-failed', message: expect.stringContaining('withdrew') })
    expect(JSON.stringify(entries)).not.toContain('Sorry')
    expect(asked.map(({ path }) => path)).toEqual(['/chat-messages', '/chat-messages/task-1/stop'])
  })

  test('a stopped run stops the app, with the same user', async () => {
    const { asked, url } = await dify((_, response) => response.write(chat('message', { answer: 'Once' })))
    const server = await start(url)
    const body = readBody(await say(server, 'A story', { threadId: 't' }))
    await body.until('Once')
    const { runs } = (await (await fetch(`${server.url}/api/runs`)).json()) as { runs: { id: string }[] }
    await server.post(`/api/runs/${runs[0]!.id}/stop`, {})
    await expect
      .poll(() => asked.at(-1))
      .toMatchObject({ path: '/chat-messages/task-1/stop', body: { user: asked[0]?.body['user'] } })
    expect(asked).toHaveLength(2)
  })
})

test('a run that is stopped before the first event stops the app when that names it', async () => {
  let begin = () => {}
  const started = Promise.withResolvers<void>()
  const { asked, url } = await dify((_, response) => {
    response.flushHeaders()
    begin = () => response.write(frame('workflow_started'))
    started.resolve()
  })
  const server = await start(url)
  const { id } = await server.runtime.start('workflow', {})
  await started.promise
  await server.post(`/api/runs/${id}/stop`, {})
  begin()
  await expect.poll(() => asked.at(-1)?.path).toBe('/workflows/tasks/task-1/stop')
})

describe('failures', () => {
  const failing: [string, Play, string][] = [
    [
      'an error in the middle',
      (_, r) =>
        r.end(
          frame('text_chunk', { data: { text: 'a' } }) +
            frame('error', { status: 400, code: 'quota', message: 'No tokens left' }),
        ),
      'Dify failed (quota): No tokens left',
    ],
    [
      'a workflow that failed',
      (_, r) => r.end(frame('workflow_finished', { data: { status: 'failed', error: 'Node 3 broke' } })),
      'Dify: failed: Node 3 broke',
    ],
    [
      'an end without a last event',
      (_, r) => r.end(frame('text_chunk', { data: { text: 'a' } })),
      'ended before its app did',
    ],
    [
      'a lost connection',
      (_, r) => r.write(frame('text_chunk', { data: { text: 'a' } }), () => r.destroy()),
      'The connection to Dify failed',
    ],
  ]
  test.each(failing)('%s fails the step with its words', async (_, play, words) => {
    const { url } = await dify(play)
    const { outcome, error } = await run(await start(url), 'workflow')
    expect([outcome, error]).toEqual([
      'failed',
      expect.objectContaining({ code: 'dify-failed', message: expect.stringContaining(words) }),
    ])
  })

  test('a refusal has its reason; without a key, the variable is named', async () => {
    const server = createServer((_, response) =>
      response.writeHead(401).end('{"code":"unauthorized","message":"Bad key"}'),
    )
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    onTestFinished(() => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const { error } = await run(await start(url), 'workflow')
    expect(error?.message).toContain('Dify answered 401 (unauthorized): Bad key')
    const { code, err } = await ran([
      'run',
      'support',
      '--dir',
      resolve('examples/dify/agents'),
      '-m',
      'Hi',
      '--data',
      'none',
    ])
    expect([code, err]).toEqual([1, expect.stringContaining('set DIFY_API_KEY')])
  })
})

describe('a workflow app', () => {
  test('its outputs are the value of the step', async () => {
    const { asked, url } = await dify((_, response) =>
      response.end(frame('text_chunk', { data: { text: 'Yes' } }) + succeeded({ ok: true })),
    )
    const { output } = await run(await start(url), 'workflow', { topic: 'tea' })
    expect(output).toEqual({ text: 'Yes', outputs: { ok: true }, usage: { totalTokens: 9 } })
    expect(asked[0]).toMatchObject({
      path: '/workflows/run',
      body: { inputs: { topic: 'tea' }, response_mode: 'streaming' },
    })
    expect(asked[0]?.body).not.toHaveProperty('query')
  })

  const form = {
    form_token: 'form-1',
    node_title: 'Review',
    form_content: 'Is this good?',
    inputs: [{ output_variable_name: 'comment', type: 'paragraph' }],
    actions: [
      { id: 'approve', title: 'Approve' },
      { id: 'reject', title: 'Reject' },
    ],
  }
  const asking =
    (...before: string[]): Play =>
    ({ path }, response) =>
      path.startsWith('/workflow/')
        ? response.end(frame('text_chunk', { data: { text: ', approved' } }) + succeeded({}))
        : response.end(
            before.join('') +
              frame('human_input_required', { data: form }) +
              frame('workflow_paused', { data: { status: 'paused' } }),
          )
  const draft = frame('text_chunk', { data: { text: 'Draft' } })

  test.each<[string, string, string[]]>([
    ['streamed', 'asking', []],
    ['a value', 'workflow', [draft]],
  ])('a question is answered over HTTP after a restart, and the app goes on (%s)', async (_, agent, before) => {
    const { asked, url } = await dify(asking(...before))
    const dir = folder()
    const first = await start(url, { dir, keep: true, close: false })
    const { id } = await run(first, agent)
    await first.close()

    const second = await start(url, { dir })
    const shown = (await (await fetch(`${second.url}/api/runs/${id}/requests`)).json()) as { requests: Frame[] }
    const [request] = shown.requests
    expect(request).toMatchObject({ kind: 'input', message: 'Is this good?' })
    const path = `/api/runs/${id}/requests/${String(request?.['requestId'])}`
    expect((await second.post(path, { value: { action: 'perhaps' } })).status).toBe(400)
    expect((await second.post(path, { value: { action: 'approve', comment: 'Fine' } })).status).toBe(200)
    await until(second.store, id, ({ type }) => type === 'run-end')
    const entries = await entriesOf(second.store, id)
    const text = before.length > 0 ? 'Draft, approved' : ', approved'
    expect(entries.at(-1)).toMatchObject({ outcome: 'completed' })
    if (agent === 'workflow') expect(entries.at(-1)).toMatchObject({ output: { text } })
    else expect(entries).toContainEqual(expect.objectContaining({ type: 'text-delta', delta: text }))
    const { user } = asked[0]!.body
    expect(asked).toMatchObject([
      { path: '/workflows/run' },
      { path: '/form/human_input/form-1', body: { action: 'approve', inputs: { comment: 'Fine' }, user } },
      { method: 'GET', path: `/workflow/run-1/events?user=${user}` },
    ])
  })

  test('a question after streamed text fails the step with the cure', async () => {
    const { asked, url } = await dify(asking(draft))
    const { error } = await run(await start(url), 'asking')
    expect(error?.message).toContain('leave out `stream`')
    expect(asked.at(-1)?.path).toBe('/workflows/tasks/task-1/stop')
  })

  test('a question that is cancelled stops the app and fails the step', async () => {
    const { asked, url } = await dify(asking())
    const server = await start(url)
    const { id } = await run(server, 'workflow')
    const { requests } = (await (await fetch(`${server.url}/api/runs/${id}/requests`)).json()) as { requests: Frame[] }
    await server.post(`/api/runs/${id}/requests/${String(requests[0]?.['requestId'])}`, { cancelled: true })
    await until(server.store, id, ({ type }) => type === 'run-end')
    expect((await entriesOf(server.store, id)).at(-1)).toMatchObject({
      outcome: 'failed',
      error: { code: 'dify-failed' },
    })
    expect(asked.at(-1)?.path).toBe('/workflows/tasks/task-1/stop')
  })
})
