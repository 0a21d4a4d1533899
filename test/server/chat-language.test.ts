/** Containers over a real socket, in front of real model servers. */
import { afterEach, describe, expect, test } from 'vitest'
import { createChat, lines } from '../support/chat.ts'
import { entriesOf, only } from '../support/engine.ts'
import { framesOf, readBody, startServer, type TestServer } from '../support/server.ts'
import { startUpstream, type Upstream, type UpstreamReply } from '../support/upstream.ts'

let server: TestServer
let upstream: Upstream
afterEach(async () => {
  await server?.close()
  await upstream?.close()
})

const messages = [{ role: 'user', content: 'Hi' }]
const say = (name: string, stream = true) =>
  `{ id: say-${name}, type: llm, config: { model: "up:m", stream: ${stream}, messages: [{ role: user, content: ${name} }] } }`
const parallel = (stream = true, more = '') => `
workflow:
  - id: all
    type: parallel
    config:
      ${more}
      branches: { one: [${say('one', stream)}], two: [${say('two', stream)}], three: [${say('three', stream)}] }
`
/** Which branch a request is from. */
const nameOf = ({ body }: UpstreamReply) => body.messages.at(-1)!.content as string

async function start(agents: Record<string, string>, answer: (reply: UpstreamReply) => unknown) {
  upstream = await startUpstream(answer)
  server = await startServer({ agents, models: { endpoints: [{ name: 'up', baseURL: upstream.baseURL }] } })
}

describe('chat: language', () => {
  test('three branches are asked at the same time', async () => {
    const waiting: UpstreamReply[] = []
    await start({ a: parallel(false) }, (reply) => {
      reply.accept()
      waiting.push(reply)
      // One after the other, the second would never be asked.
      if (waiting.length < 3) return
      for (const each of waiting) {
        each.say(nameOf(each))
        each.finish()
      }
    })
    const response = await server.post('/api/chat', { agentId: 'a', messages })
    expect(await response.json()).toMatchObject({
      one: { text: 'one' },
      two: { text: 'two' },
      three: { text: 'three' },
    })
  })

  /** Answers each branch when the test says so. */
  function puppets() {
    const replies = new Map<string, UpstreamReply>()
    const all = Promise.withResolvers<void>()
    return {
      replies,
      all: all.promise,
      answer(reply: UpstreamReply) {
        replies.set(nameOf(reply), reply)
        reply.accept()
        if (replies.size === 3) all.resolve()
      },
    }
  }

  test('plain text: the first branch’s words at once, the others behind it, each whole, in declared order', async () => {
    const { replies, all, answer } = puppets()
    await start({ a: parallel() }, answer)
    const response = await server.post('/api/chat', { agentId: 'a', messages }, { headers: { accept: 'text/plain' } })
    await all
    const body = readBody(response)
    replies.get('three')!.say('III.')
    replies.get('three')!.finish()
    replies.get('two')!.say('II')
    replies.get('one')!.say('I')
    expect(await body.until('I')).toBe('I')
    replies.get('one')!.say(', ')
    expect(await body.until(', ')).toBe('I, ')
    replies.get('one')!.finish()
    expect(await body.until('II')).toBe('I, \n\nII')
    replies.get('two')!.say(', ')
    replies.get('two')!.finish()
    expect(await body.rest()).toBe('I, \n\nII, \n\nIII.')
  })

  test('UI: every branch’s words as they come; the official client shows each whole', async () => {
    const { replies, all, answer } = puppets()
    await start({ a: parallel() }, answer)
    const response = await server.post('/api/chat', { agentId: 'a', messages })
    await all
    const body = readBody(response)
    for (const [name, word] of [
      ['three', 'III'],
      ['one', 'I'],
      ['two', 'II'],
      ['three', 'iii'],
      ['one', 'i'],
    ] as const) {
      replies.get(name)!.say(word)
      await body.until(JSON.stringify(word))
    }
    for (const reply of replies.values()) reply.finish()
    const deltas = framesOf(await body.rest()).flatMap((frame) =>
      frame !== 'done' && frame['type'] === 'text-delta' ? [frame['delta']] : [],
    )
    expect(deltas).toEqual(['III', 'I', 'II', 'iii', 'i'])

    const again = puppets()
    await upstream.close()
    await server.close()
    await start({ a: parallel() }, again.answer)
    const { chat, errors } = createChat(server.url)
    const sent = chat.sendMessage({ text: 'Hi' })
    await again.all
    for (const [name, reply] of [...again.replies].toReversed()) {
      reply.say(`${name}!`)
      reply.finish()
    }
    await sent
    expect(errors).toEqual([])
    const shown = lines(chat.messages)[1]!
    for (const word of ['one!', 'two!', 'three!']) expect(shown).toContain(word)
  })

  test('a branch that fails: the sockets of the others close, one error frame, what was said stays', async () => {
    const { replies, all, answer } = puppets()
    await start({ a: parallel().replaceAll('stream: true', 'stream: true, retries: 0') }, answer)
    const response = await server.post('/api/chat', { agentId: 'a', messages })
    await all
    const body = readBody(response)
    replies.get('one')!.say('Some words')
    await body.until('Some words')
    replies.get('two')!.say('x')
    await body.until('"x"')
    replies.get('two')!.drop()
    await Promise.all([replies.get('one')!.left, replies.get('three')!.left])
    const frames = framesOf(await body.rest())
    expect(frames.filter((frame) => frame !== 'done' && frame['type'] === 'error')).toHaveLength(1)
    expect(frames.at(-1)).toBe('done')
    const run = response.headers.get('x-millrace-run-id')!
    const entries = await entriesOf(server.store, run)
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'failed' }])
    expect(only(entries, 'error')).toHaveLength(1)
  })

  test.each([
    ['in a condition', `workflow: [{ id: c, type: condition, config: { if: "true", then: [${say('one')}] } }]`],
    ['in a called agent', 'workflow: [{ id: c, type: call-agent, config: { agent: child } }]'],
    ['in a branch', `workflow: [{ id: p, type: parallel, config: { branches: { x: [${say('one')}] } } }]`],
  ])('a step that streams %s: status and first frame are out before the model accepts', async (_, a) => {
    const held: UpstreamReply[] = []
    await start({ a, child: `workflow: [${say('one')}]` }, (reply) => held.push(reply))
    const response = await server.post('/api/chat', { agentId: 'a', messages })
    const body = readBody(response)
    await body.until('"start"')
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    held[0]!.say('Hello')
    await body.until('Hello')
    held[0]!.finish()
    expect((await body.rest()).trimEnd().endsWith('[DONE]')).toBe(true)
  })

  test('a refusal inside of a container is a status', async () => {
    await start({ a: parallel().replaceAll('stream: true', 'stream: true, retries: 0') }, (reply) => {
      reply.refuse(429, { error: { message: 'slow down' } }, { 'retry-after': '7' })
    })
    const response = await server.post('/api/chat', { agentId: 'a', messages })
    expect(response.status).toBe(429)
    expect(response.headers.get('retry-after')).toBe('7')
  })

  test('a drained call gives none of its words to the client', async () => {
    await start(
      {
        child: `workflow: [${say('one')}]`,
        a: `
workflow:
  - { id: ask, type: call-agent, result: got, config: { agent: child } }
  - { id: tell, type: llm, config: { model: "up:m", stream: true, messages: [{ role: user, content: "It said $got.text" }] } }`,
      },
      (reply) => {
        reply.say(nameOf(reply) === 'one' ? 'a secret' : 'nothing')
        reply.finish()
      },
    )
    const response = await server.post('/api/chat', { agentId: 'a', messages }, { headers: { accept: 'text/plain' } })
    expect(await response.text()).toBe('nothing')
    expect(nameOf(upstream.requests[1]!)).toBe('It said a secret')
  })
})
