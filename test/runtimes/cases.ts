/** What a handler must do in every runtime, against its address and the model server that its agent asks. */
import { expect } from 'vitest'
import { framesOf, readBody } from '../support/server.ts'
import type { Upstream, UpstreamReply } from '../support/upstream.ts'

export interface Place {
  url: string
  upstream: Upstream
  /** The next request that the model server gets. */
  asked(): Promise<UpstreamReply>
  /** Sent with each request. */
  headers: Record<string, string>
}

const user = (content: string) => [{ role: 'user', content }]

interface Definition {
  path: string
  body(content: string): object
  failed?: string
}

/** The four protocols: how each asks, and how it says that a run has failed. */
const protocols = {
  'plain text': {
    path: '/api/beddel/chat',
    body: (content: string) => ({ agentId: 'assistant', messages: user(content) }),
  },
  useChat: {
    path: '/api/chat',
    body: (content: string) => ({ agentId: 'assistant', messages: user(content) }),
    failed: '"type":"error"',
  },
  OpenAI: {
    path: '/v1/chat/completions',
    body: (content: string) => ({ model: 'assistant', stream: true, messages: user(content) }),
    failed: '"error":{',
  },
  'AG-UI': {
    path: '/ag-ui/assistant',
    body: (content: string) => ({
      threadId: crypto.randomUUID(),
      runId: crypto.randomUUID(),
      messages: [{ id: '1', role: 'user', content }],
      tools: [],
      context: [],
      state: {},
      forwardedProps: {},
    }),
    failed: 'RUN_ERROR',
  },
} satisfies Record<string, Definition>
type Protocol = keyof typeof protocols
const names = Object.keys(protocols) as Protocol[]

function post({ url, headers }: Place, path: string, body: object, signal?: AbortSignal): Promise<Response> {
  return fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  })
}

function ask(place: Place, protocol: Protocol, content: string, signal?: AbortSignal): Promise<Response> {
  const { path, body } = protocols[protocol]
  return post(place, path, body(content), signal)
}

/** Plain text as a reader sees it: keep-alives are a space before it and zero-width ones in it. */
const seen = (text: string) => text.trimStart().replaceAll('\u200B', '')

async function answers(place: Place, protocol: Protocol, content = 'Hi'): Promise<void> {
  const [response, reply] = await Promise.all([
    ask(place, protocol, content),
    place.asked().then((reply) => {
      reply.say('first')
      return reply
    }),
  ])
  expect(response.status).toBe(200)
  const body = readBody(response)
  // While the model is held.
  await body.until('first')
  reply.say(' second')
  reply.finish()
  const rest = await body.rest()
  if (protocol === 'plain text') expect(seen(rest)).toBe('first second')
  else expect(rest).toContain(' second')
}

async function streams(place: Place): Promise<void> {
  for (const protocol of names) await answers(place, protocol)
}

/** The model's connection closes, and whoever comes next gets an answer. */
async function leaves(place: Place): Promise<void> {
  for (const protocol of names) {
    const leave = new AbortController()
    const asking = ask(place, protocol, 'Hi', leave.signal)
    const reply = await place.asked()
    reply.say('first')
    await readBody(await asking).until('first')
    await fetch(`${place.url}/collect`)
    leave.abort()
    await reply.left
    await answers(place, protocol)
  }
  const { runs } = (await (await fetch(`${place.url}/api/runs?status=running`, { headers: place.headers })).json()) as {
    runs: object[]
  }
  expect(runs).toEqual([])
}

/** The same conversation goes on after its client has left. */
async function goesOn(place: Place): Promise<void> {
  const id = crypto.randomUUID()
  const turn = (content: string, signal?: AbortSignal) =>
    post(place, '/api/chat', { agentId: 'assistant', id, messages: user(content) }, signal)
  const leave = new AbortController()
  const asking = turn('Hi', leave.signal)
  const first = await place.asked()
  first.say('first')
  await readBody(await asking).until('first')
  leave.abort()
  const again = turn('Again')
  const reply = await place.asked()
  reply.say('second')
  reply.finish()
  expect(await (await again).text()).toContain('second')
}

async function isSilent(place: Place): Promise<void> {
  const open = await Promise.all(
    names.map(async (protocol) => {
      const asking = ask(place, protocol, 'Hi')
      const reply = await place.asked()
      reply.say('first')
      const body = readBody(await asking)
      await body.until('first')
      return { protocol, reply, body }
    }),
  )
  const framed = open.filter(({ protocol }) => protocol !== 'plain text')
  await Promise.all(framed.map(({ body }) => body.until(': keep-alive\n\n'.repeat(5))))
  // Who was asked by whom is not known: they came at once.
  for (const { reply } of open) {
    reply.say(' second')
    reply.finish()
  }
  for (const { protocol, body } of open) {
    const rest = await body.rest()
    if (protocol === 'plain text') expect(seen(rest)).toBe('first second')
    else expect(framesOf(rest.replaceAll(': keep-alive\n\n', '')).length).toBeGreaterThan(2)
    expect(rest).toContain(' second')
  }
}

async function fails(place: Place): Promise<void> {
  for (const protocol of names) {
    const asking = ask(place, protocol, 'Hi')
    const reply = await place.asked()
    reply.say('first')
    const body = readBody(await asking)
    await body.until('first')
    reply.drop()
    const { failed }: Definition = protocols[protocol]
    if (failed === undefined) await expect(body.rest()).rejects.toThrow()
    else expect(await body.rest()).toContain(failed)
  }
}

async function twentyAtOnce(place: Place): Promise<void> {
  const asking = Array.from({ length: 20 }, (_, i) => ask(place, names[i % names.length]!, `Number ${i}.`))
  const replies: UpstreamReply[] = []
  while (replies.length < 20) replies.push(await place.asked())
  for (const reply of replies) {
    reply.say(`You said: ${String(reply.body.messages.at(-1)!.content)}`)
    reply.finish()
  }
  const texts = await Promise.all(asking.map(async (response) => (await response).text()))
  texts.forEach((text, i) => expect(text.replaceAll('\u200B', '')).toMatch(new RegExp(`Number ${i}\\.`, 'u')))
}

/** A run without a reader ends. */
async function runsUnread(place: Place): Promise<void> {
  const started = await post(place, '/api/runs', { agentId: 'assistant', input: { messages: user('Hi') } })
  expect(started.status).toBe(202)
  const { id } = (await started.json()) as { id: string }
  const reply = await place.asked()
  reply.say('first')
  reply.finish()
  await expect
    .poll(async () => (await fetch(`${place.url}/api/runs/${id}`, { headers: place.headers })).json())
    .toMatchObject({ status: 'completed' })
}

export type Case = [name: string, run: (place: Place) => Promise<void>]

export const cases: Case[] = Object.entries({
  'four protocols stream': streams,
  'a client leaves: the model stops, and the next request is answered': leaves,
  'a client leaves: its conversation goes on': goesOn,
  'a silent model: keep-alives, then the rest': isSilent,
  'the model breaks off: every client is told': fails,
  '20 at once': twentyAtOnce,
  'POST /api/runs runs without a reader': runsUnread,
})

/** Where the platform gives nothing that holds a run, it says so before it begins. */
async function refusesUnread(place: Place): Promise<void> {
  const refused = await post(place, '/api/runs', { agentId: 'assistant', input: { messages: user('Hi') } })
  expect([refused.status, await refused.text()]).toEqual([500, expect.stringContaining('waitUntil')])
}

const bare = { 'x-without-context': '1' }
const unread = 'POST /api/runs runs without a reader'

/** The same without the platform's `waitUntil`. */
export const casesWithoutWaitUntil: Case[] = cases.map(([name, run]) => [
  `${name} (no waitUntil)`,
  (place) => (name === unread ? refusesUnread : run)({ ...place, headers: bare }),
])
