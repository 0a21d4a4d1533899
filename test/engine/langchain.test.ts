/** Agents on LangChain's ChatOpenAI, against a local server: loops, failures and stops are what they are with other models. */
import { ChatOpenAI } from '@langchain/openai'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { fromLangChain } from '../../src/langchain.ts'
import { agent, createEngine, entriesOf, only, until, type Engine } from '../support/engine.ts'
import { startUpstream, type Upstream, type UpstreamReply } from '../support/upstream.ts'

let engine: Engine
let upstream: Upstream
afterEach(async () => {
  await engine.close()
  await upstream.close()
})

const messages = [{ role: 'user', content: 'Hi' }]
const square = { parameters: z.object({ n: z.number() }), execute: ({ n }: { n: number }) => ({ square: n * n }) }

/** An agent on `chain:m`, whose server answers with this function. */
async function start(
  answer: (reply: UpstreamReply, n: number) => unknown,
  yaml = agent('tools: [square]\nretries: 0'),
) {
  upstream = await startUpstream(answer)
  const chain = (model: string) => {
    const configuration = { baseURL: upstream.baseURL }
    return fromLangChain(new ChatOpenAI({ model, apiKey: 'test', maxRetries: 0, configuration }))
  }
  engine = createEngine({
    agents: { a: yaml.replaceAll('script:m', 'chain:m') },
    models: { providers: { chain } },
    tools: { square },
  })
  return engine.runtime.start('a', { messages })
}

describe('LangChain models in a run', () => {
  test('a tool loop: its call runs, its result goes back, words come as they are said', async () => {
    const run = await start((reply, n) => {
      if (n === 1) {
        reply.call('c1', 'square', { n: 3 })
        return reply.finish('tool_calls')
      }
      reply.say('It is ')
      reply.say('9.')
      return reply.finish()
    })
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'It is 9.' })
    const entries = await entriesOf(engine.store, run.id)
    expect(only(entries, 'tool-result')).toMatchObject([{ toolCallId: 'c1', result: { square: 9 } }])
    expect(only(entries, 'text-delta').map(({ delta }) => delta)).toEqual(['It is ', '9.'])
    expect(upstream.requests[1]!.body.messages).toMatchObject([
      { role: 'user', content: 'Hi' },
      { role: 'assistant', tool_calls: [{ id: 'c1', function: { name: 'square', arguments: '{"n":3}' } }] },
      { role: 'tool', tool_call_id: 'c1', content: '{"square":9}' },
    ])
  })

  test('as a router, and as the step that answers behind it', async () => {
    const yaml = `
workflow:
  - { id: route, type: router, result: routed, config: { model: "script:m", retries: 0, tools: [square] } }
  - { id: answer, type: llm, config: { model: "script:m", retries: 0, stream: true, messages: "$routed.messages" } }
`
    const run = await start((reply, n) => {
      if (n === 1) reply.call('c1', 'square', { n: 3 })
      else if (n === 2) reply.call('c2', 'respond', { reason: 'done' })
      else reply.say('9.')
      return reply.finish(n < 3 ? 'tool_calls' : 'stop')
    }, yaml)
    expect(await run.result).toMatchObject({ outcome: 'completed', text: '9.' })
    expect(upstream.requests.map(({ body }) => body.tools?.length)).toEqual([2, 2, undefined])
    await entriesOf(engine.store, run.id)
  })

  test.each([
    [
      'rate-limited',
      (reply: UpstreamReply) => reply.refuse(429, { error: { message: 'slow down' } }, { 'retry-after': '9' }),
    ],
    ['model-refused', (reply: UpstreamReply) => reply.refuse(401, { error: { message: 'no key' } })],
    ['model-unavailable', (reply: UpstreamReply) => reply.refuse(503, { error: { message: 'busy' } })],
    ['model-incomplete', (reply: UpstreamReply) => (reply.say('half'), reply.end())],
    ['connection-lost', (reply: UpstreamReply) => (reply.say('half'), setImmediate(reply.drop))],
  ])('what fails at its provider is %s', async (code, answer) => {
    const run = await start(answer)
    expect(await run.result).toMatchObject({ outcome: 'failed', error: { code } })
    await entriesOf(engine.store, run.id)
  })

  test('a stop reaches its server', async () => {
    const run = await start((reply) => reply.say('half'))
    await until(engine.store, run.id, ({ type }) => type === 'text-delta')
    await run.stop()
    expect(await run.result).toMatchObject({ outcome: 'aborted', text: 'half' })
    await upstream.requests[0]!.left
  })
})
