/** Clients of an instance that drains: what they read is read to its end, there or elsewhere; what they ask is asked elsewhere. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { Chat } from '@ai-sdk/react'
import type { UIMessage } from 'ai'
import { startBalancer } from '../../examples/scale/balancer.ts'
import { createChatTransport } from '../../src/client.ts'
import { serve, type Served } from '../../src/server/serve.ts'
import { createChat, lines } from '../support/chat.ts'
import { folder } from '../support/cli.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'
import { connectSocket, judged, runInput, textOf, transports } from '../support/socket.ts'
import { startUpstream, type UpstreamReply } from '../support/upstream.ts'
import { overHttp, overSocket } from '../client/transports.ts'

const agentOf = (more: string) =>
  `onDisconnect: detach\nworkflow: [{ id: answer, type: llm, config: { model: "up:m", tools: [calculator], ${more} } }]`
const json = { 'content-type': 'application/json' }
const messages = [{ role: 'user', content: 'Go' }]

interface FleetOptions {
  graceMs: number
  drainMs?: number
  first?: 'old' | 'other'
}

describeRedis('an instance that drains', (redis) => {
  /** Two instances, and a balancer whose first request goes to the first of them. Each run makes two model calls. */
  async function fleet({ graceMs, drainMs = 300, first = 'old' }: FleetOptions) {
    const upstream = await startUpstream((reply) => reply.accept())
    onTestFinished(() => upstream.close())
    const settings = {
      record: { data: 'none', store: `${redis().url}?prefix=${freshPrefix()}` },
      server: { port: 0, drainMs, graceMs },
      models: { endpoints: [{ name: 'up', baseURL: upstream.baseURL }] },
    }
    const dir = folder({
      'a.yaml': agentOf('stream: true'),
      'whole.yaml': agentOf('stream: false'),
      'millrace.config.mjs': `export default ${JSON.stringify(settings)}`,
    })
    const start = async () => {
      const served = await serve({ dir, env: {}, log: () => undefined })
      onTestFinished(() => served.close())
      return served
    }
    const [old, other] = [await start(), await start()]
    const urls = [old, other].map(({ url }) => new URL(url))
    const balancer = await startBalancer(first === 'old' ? urls : urls.toReversed(), 0)
    onTestFinished(() => balancer.close())
    const asked = async (n: number): Promise<UpstreamReply[]> => {
      await expect.poll(() => upstream.requests.length).toBe(n)
      return upstream.requests
    }
    return { upstream, old, other, balancer, asked }
  }

  const drains = ({ url }: Served) => expect.poll(async () => (await fetch(`${url}/health`)).status).toBe(503)
  /** The next call of a run is made by its next owner. */
  const endFirst = (replies: UpstreamReply[]) => {
    for (const { call, finish } of replies) {
      call('c1', 'calculator', { expression: '6*7' })
      finish('tool_calls')
    }
  }

  test('`useChat` and whole answers are read to their end there, if it comes in time; what is new goes elsewhere', async () => {
    const { upstream, old, balancer, asked } = await fleet({ graceMs: 20_000, drainMs: 0, first: 'other' })
    const { chat, errors } = createChat(old.url, { id: 'near' })
    const sent = chat.sendMessage({ text: 'Go' })
    await asked(1)
    const body = JSON.stringify({ agentId: 'whole', messages: [{ role: 'user', content: 'Whole' }] })
    const whole = fetch(`${old.url}/api/chat`, { method: 'POST', headers: json, body })
    await asked(2)
    // Its connection is there: the balancer leads clients of one address to its second instance.
    const bySocket = overSocket(balancer.url)
    const own = bySocket.run({ agent: 'a', messages })
    const ownText = own.text
    await asked(3)
    upstream.requests[0]!.say('one ')
    await expect.poll(() => lines(chat.messages)[1]).toBe('assistant: one ')
    expect(old.project.runtime.active).toBe(3)
    const closed = old.close()
    await drains(old)
    const refused = createChat(old.url)
    await refused.chat.sendMessage({ text: 'Go' })
    expect(refused.errors.map(({ message }) => message)).toEqual([expect.stringContaining('shutting down')])
    endFirst(upstream.requests.slice(0, 3))
    await asked(6)
    const fresh = createChat(balancer.url)
    const answered = fresh.chat.sendMessage({ text: 'Go' })
    await asked(7)
    // While the old one still has its readers.
    const late = bySocket.run({ agent: 'a', messages }).text
    await asked(8)
    await drains(old)
    const isWhole = ({ body: told }: UpstreamReply) => JSON.stringify(told.messages).includes('Whole')
    const rest = upstream.requests.slice(3).filter((each) => !isWhole(each))
    expect(rest).toHaveLength(4)
    for (const { say, finish } of rest) {
      say('two')
      finish()
    }
    await Promise.all([sent, answered])
    expect([await ownText, await late]).toEqual(['two', 'two'])
    // A server that waits for streams only would be gone.
    await sleep(300)
    const last = upstream.requests.findLast(isWhole)!
    last.say('two')
    last.finish()
    expect([errors, fresh.errors]).toEqual([[], []])
    expect(lines(chat.messages)).toEqual(['user: Go', 'assistant: one  [calculator output-available] two'])
    expect(lines(fresh.chat.messages)).toEqual(['user: Go', 'assistant: two'])
    const response = await whole
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('two')
    await closed
  })

  test('what ends later: `useChat` reads it again elsewhere, our client reads on; a whole answer is a 503 with Retry-After', async () => {
    const { upstream, old, balancer, asked } = await fleet({ graceMs: 1000 })
    /** So that the next request goes to the old one again. */
    const turn = async () => void (await fetch(`${balancer.url}/api/agents`))
    const official = createChat(balancer.url, { id: 'official' })
    const errors: Error[] = []
    const ours = new Chat<UIMessage>({
      id: 'ours',
      transport: createChatTransport({ client: overHttp(balancer.url), agent: 'a' }),
      onError: (error) => void errors.push(error),
    })
    const chats = [official.chat, ours]
    for (const [i, chat] of chats.entries()) {
      const sent = chat.sendMessage({ text: 'Go' })
      await asked(i + 1)
      upstream.requests[i]!.say('one ')
      onTestFinished(() => sent)
      await turn()
    }
    const own = overHttp(balancer.url).run({ agent: 'a', messages })
    const read = own.text
    await asked(3)
    await own.id
    await turn()
    const bySocket = overSocket(old.url)
    const here = bySocket.run({ agent: 'a', messages })
    void here.text
    const body = JSON.stringify({ agentId: 'whole', messages })
    const whole = fetch(`${old.url}/api/chat`, { method: 'POST', headers: json, body })
    await asked(5)
    for (const { say } of upstream.requests.slice(2)) say('one ')
    for (const chat of chats) await expect.poll(() => lines(chat.messages)[1]).toBe('assistant: one ')
    const closed = old.close()
    endFirst([...upstream.requests])
    await asked(10)
    for (const chat of chats) await expect.poll(() => chat.status).toBe('error')
    expect([official.errors.length, errors.length]).toEqual([1, 1])
    const refused = await whole
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    expect(refused.headers.get('x-millrace-run-id')).toMatch(/^run_/u)
    expect(await refused.json()).toMatchObject({ error: { code: 'closing' } })
    await closed
    // As a page does that finds its stream broken, or is loaded again. One asks while the run goes on, the other when it has ended.
    const resumed = official.chat.resumeStream()
    await expect.poll(() => official.runs.length).toBe(2)
    for (const { say, finish } of upstream.requests.slice(5)) {
      say('two')
      finish()
    }
    await resumed
    const ended = async () => (await (await fetch(`${balancer.url}/api/runs?status=running`)).json()) as { runs: [] }
    await expect.poll(async () => (await ended()).runs).toEqual([])
    await ours.resumeStream()
    const shown = ['user: Go', 'assistant: one  [calculator output-available] two']
    for (const chat of chats) expect([chat.status, lines(chat.messages)]).toEqual(['ready', shown])
    expect(await read).toBe('one two')
    expect(await overHttp(balancer.url).attach(await here.id).text).toBe('one two')
    expect(upstream.requests).toHaveLength(10)
  })

  test.each(transports)(
    '%s: a followed run is read to its end; what is asked is refused with a hint, a stop is not',
    async (transport) => {
      const { upstream, old, asked } = await fleet({ graceMs: 20_000 })
      const client = await connectSocket(old.url, transport)
      const reasons: string[] = []
      client.socket.on('disconnect', (reason) => void reasons.push(reason))
      const [near, stopped] = ['near', 'stopped'].map((name) => ({
        threadId: name,
        runId: name,
        forwardedProps: { agent: 'a' },
      }))
      const { millraceRunId: runId } = await client.run(near!)
      await asked(1)
      await client.run(stopped!)
      await asked(2)
      for (const { say } of upstream.requests) say('one ')
      for (const name of ['near', 'stopped'])
        await client.until(({ event, with: of }) => event.type === 'TEXT_MESSAGE_CONTENT' && of.runId === name)
      const closed = old.close()
      await drains(old)

      const closing = { code: 'closing', message: expect.stringContaining('shutting down'), retryAfter: 1 }
      const refused = { ok: false, error: closing }
      expect(await client.run({ runId: 'new', forwardedProps: { agent: 'a' } })).toEqual(refused)
      expect(await client.send('watch_run', { runId })).toEqual(refused)
      expect(await client.send('request', { id: '1', path: '/api/runs' })).toEqual(refused)
      client.socket.emit('message', {
        type: 'run_agent',
        data: runInput({ runId: 'silent', forwardedProps: { agent: 'a' } }),
      })
      const told = await client.until(({ with: of }) => of.runId === 'silent')
      expect(told).toEqual({
        event: { type: 'RUN_ERROR', code: 'closing', message: closing.message },
        with: { runId: 'silent', threadId: 't', retryAfter: 1 },
      })
      await expect(connectSocket(old.url, transport)).rejects.toThrow()

      endFirst(upstream.requests.slice(0, 2))
      await asked(4)
      // Longer than a server waits that has nothing but connections to close.
      if (transport === 'websocket') await sleep(1100)
      expect(await client.send('abort_run', { runId: 'stopped' })).toMatchObject({ ok: true })
      expect((await client.ended('stopped')).at(-1)).toMatchObject({
        type: 'RUN_FINISHED',
        outcome: { type: 'cancelled' },
      })
      for (const { say, finish } of upstream.requests.slice(2)) {
        say('two')
        finish()
      }
      const events = await client.ended('near')
      await judged(events)
      expect(textOf(events)).toBe('one two')
      expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
      expect(reasons).toEqual([])
      await closed
      await expect.poll(() => reasons).toEqual(['transport close'])
    },
  )

  test.each(transports)(
    '%s: what ends later: the client is disconnected, connects elsewhere, and goes on behind what it has',
    async (transport) => {
      // The balancer leads clients of one address to its second instance.
      const { upstream, old, balancer, asked } = await fleet({ graceMs: 500, first: 'other' })
      const quick = { reconnection: true, reconnectionDelay: 50, reconnectionDelayMax: 100 }
      const client = await connectSocket(balancer.url, transport, quick)
      const { millraceRunId: runId } = await client.run({
        runId: 'far',
        threadId: 'far',
        forwardedProps: { agent: 'a' },
      })
      const [first] = await asked(1)
      first!.say('one ')
      await client.until(({ event }) => event.type === 'TEXT_MESSAGE_CONTENT')
      const bySocket = overSocket(balancer.url)
      const own = bySocket.run({ agent: 'a', messages })
      const read = own.text
      await asked(2)
      upstream.requests[1]!.say('one ')
      const owners = old.project.runtime.active
      const again = new Promise<void>((resolve) =>
        client.socket.once('disconnect', () => client.socket.once('connect', resolve)),
      )
      const closed = old.close()
      endFirst(upstream.requests.slice(0, 2))
      await asked(4)
      // Asked for while it drains, by a client whose connection is there.
      const late = bySocket.run({ agent: 'a', messages })
      const lateText = late.text
      await closed
      await again
      const { with: after } = client.sent.at(-1)!
      expect(await client.send('watch_run', { runId, after, protocolVersion: '1.0' })).toMatchObject({ ok: true })
      await asked(5)
      for (const { say, finish } of upstream.requests.slice(2)) {
        say('two')
        finish()
      }
      const events = await client.ended('far')
      await judged(events)
      expect(textOf(events)).toBe('one two')
      expect([owners, await read, await lateText]).toEqual([2, 'one two', 'two'])
    },
  )
})
