/** An answer of a model server that is none, or breaks off before it said anything, is asked for again. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, test, type TestContext } from 'vitest'
import { agent, createEngine, entriesOf } from '../support/engine.ts'

type Answer = (outgoing: ServerResponse) => void

const sse = { 'content-type': 'text/event-stream' }
const html = '<!doctype html><title>502</title><h1>Bad gateway</h1>'

const protocols = {
  'openai-chat': {
    whole: [
      '{"choices":[{"index":0,"delta":{"role":"assistant","content":"all of it"}}]}',
      '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
      '[DONE]',
    ],
    beginning: ['{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}'],
  },
  'openai-responses': {
    whole: [
      '{"type":"response.created","response":{"id":"r","created_at":1,"model":"m"}}',
      '{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"i"}}',
      '{"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":"all of it"}',
      '{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"i"}}',
      '{"type":"response.completed","response":{"usage":{"input_tokens":1,"output_tokens":1}}}',
    ],
    beginning: ['{"type":"response.created","response":{"id":"r","created_at":1,"model":"m"}}'],
  },
  anthropic: {
    whole: [
      '{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}',
      '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
      '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"all of it"}}',
      '{"type":"content_block_stop","index":0}',
      '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}',
      '{"type":"message_stop"}',
    ],
    beginning: [
      '{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}',
    ],
  },
  google: {
    whole: ['{"candidates":[{"content":{"role":"model","parts":[{"text":"all of it"}]},"finishReason":"STOP"}]}'],
    beginning: ['{"candidates":[{"content":{"role":"model","parts":[]}}]}'],
  },
} as const

const events = (list: readonly string[]) => list.map((data) => `data: ${data}\n\n`).join('')

/** The first calls are answered so, the last one whole. */
async function run({ onTestFinished }: TestContext, protocol: keyof typeof protocols, answers: Answer[]) {
  let calls = 0
  const server = createServer((incoming, outgoing) => {
    incoming.resume()
    const answer = answers[calls++]
    if (answer !== undefined) answer(outgoing)
    else outgoing.writeHead(200, sse).end(events(protocols[protocol].whole))
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close().closeAllConnections())
  await once(server, 'listening')
  const baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const engine = createEngine({
    agents: { a: agent('retries: 2').replace('script:m', 'box:tiny') },
    models: { endpoints: [{ name: 'box', baseURL, protocol }] },
  })
  onTestFinished(() => engine.close())
  const { id, result } = await engine.runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] })
  const { outcome, text, error } = await result
  const retries = (await entriesOf(engine.store, id)).filter(({ type }) => type === 'retry')
  return { outcome, text, error, calls, retries }
}

// Each waits a quarter of a second before it asks again: they wait together.
describe.concurrent.each(Object.keys(protocols) as (keyof typeof protocols)[])('%s', (protocol) => {
  const { whole, beginning } = protocols[protocol]
  test.for<[string, Answer]>([
    ['nothing', (outgoing) => outgoing.writeHead(200, sse).end()],
    ['nothing and no type', (outgoing) => outgoing.writeHead(200).end()],
    ['204', (outgoing) => outgoing.writeHead(204).end()],
    ['a page', (outgoing) => outgoing.writeHead(200, { 'content-type': 'text/html' }).end(html)],
    ['a page that is called a stream', (outgoing) => outgoing.writeHead(200, sse).end(html)],
    ['the end alone', (outgoing) => outgoing.writeHead(200, sse).end('data: [DONE]\n\n')],
    ['a beginning', (outgoing) => outgoing.writeHead(200, sse).end(events(beginning))],
    ['half a line', (outgoing) => outgoing.writeHead(200, sse).end(`${events(beginning)}data: {"cho`)],
    ['a page in a line', (outgoing) => outgoing.writeHead(200, sse).end(`data: ${html}\n\n`)],
    ['JSON', (outgoing) => outgoing.writeHead(200, { 'content-type': 'application/json' }).end('{}')],
  ])('%s, and then an answer', async ([, answer], context) => {
    const { expect } = context
    const { outcome, text, error, calls, retries } = await run(context, protocol, [answer])
    expect({ error, outcome, text, calls, retries: retries.length }).toEqual({
      error: undefined,
      outcome: 'completed',
      text: 'all of it',
      calls: 2,
      retries: 1,
    })
  })

  test('always a page: the run fails after its retries and says what came', async (context) => {
    const { expect } = context
    const page: Answer = (outgoing) => outgoing.writeHead(200, { 'content-type': 'text/html' }).end(html)
    const { outcome, error, calls } = await run(context, protocol, [page, page, page])
    expect({ outcome, calls }).toEqual({ outcome: 'failed', calls: 3 })
    expect(error).toMatchObject({ code: 'model-incomplete' })
  })

  test('what broke off behind its first words is not asked for again', async (context) => {
    const { expect } = context
    const half = whole
      .slice(0, protocol === 'google' ? 1 : -2)
      .map((line) => line.replace(',"finishReason":"STOP"', ''))
    const { outcome, text, calls } = await run(context, protocol, [
      (outgoing) => outgoing.writeHead(200, sse).end(events(half)),
    ])
    expect({ outcome, text, calls }).toEqual({ outcome: 'failed', text: 'all of it', calls: 1 })
  })
})
