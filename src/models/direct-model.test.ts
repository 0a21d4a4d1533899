/** Models whose streams we read ourselves, against real servers and the real packages. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { MillraceError } from '../part/error.ts'
import type { ModelPart } from '../part/model-part.ts'
import { streamModel } from './model.ts'
import type { LanguageModel } from './language-model.ts'
import { isDirect } from './part-sink.ts'
import { loadModel, type DecoderName, type EndpointProtocol } from './providers.ts'

const original = globalThis.setTimeout
const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

type Answer = (response: ServerResponse, body: Record<string, unknown>, request: IncomingMessage) => void

async function serve(answer: Answer): Promise<string> {
  const server = createServer(async (request, response) => {
    response.sendDate = false
    let text = ''
    for await (const piece of request.setEncoding('utf8')) text += piece as string
    answer(response, JSON.parse(text) as Record<string, unknown>, request)
  }).listen(0, '127.0.0.1')
  closing.push(() => server.close().closeAllConnections())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

const load = (protocol: EndpointProtocol, baseURL: string, decoder: DecoderName = 'millrace') =>
  loadModel({ provider: 'local', modelId: 'm', protocol, apiKey: 'test', baseURL, decoder })

interface Heard {
  parts: ModelPart[]
  error: unknown
}

async function hear(
  model: LanguageModel,
  signal = new AbortController().signal,
  onPart: (part: ModelPart) => void = () => undefined,
  ready?: () => Promise<void> | undefined,
): Promise<Heard> {
  const parts: ModelPart[] = []
  const call = { messages: [{ role: 'user' as const, content: 'Hi' }], signal }
  const note = (part: ModelPart) => {
    parts.push(part)
    onPart(part)
  }
  const error: unknown = await streamModel(model, call, note, { ready }).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  return { parts, error }
}

const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
const content = (text: string) => event({ id: 'c', choices: [{ index: 0, delta: { content: text } }] })
const stop = event({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
const begin = (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/event-stream' })
const textOf = (parts: ModelPart[]) => parts.map((part) => (part.type === 'text-delta' ? part.delta : '')).join('')

const usage = { input_tokens: 1, output_tokens: 1 }
const item = { type: 'message', id: 'i' }
/** The last of each ends the answer; Google's says that it is complete. */
const answers: Record<EndpointProtocol, string[]> = {
  'openai-chat': [content('Hi'), stop, 'data: [DONE]\n\n'],
  'openai-responses': [
    event({ type: 'response.output_item.added', output_index: 0, item }),
    event({ type: 'response.output_text.delta', output_index: 0, item_id: 'i', delta: 'Hi' }),
    event({ type: 'response.output_item.done', output_index: 0, item }),
    event({ type: 'response.completed', response: { usage } }),
  ],
  anthropic: [
    event({ type: 'message_start', message: { id: 'm', usage } }),
    event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Hi' } }),
    event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage }),
    event({ type: 'message_stop' }),
  ],
  google: [
    event({ candidates: [{ content: { parts: [{ text: 'H' }] } }] }),
    event({ candidates: [{ content: { parts: [{ text: 'i' }] } }] }),
    event({ candidates: [{ content: { parts: [] }, finishReason: 'STOP' }] }),
  ],
}

const protocols: EndpointProtocol[] = ['openai-chat', 'openai-responses', 'anthropic', 'google']

describe.each(protocols)('%s', (protocol) => {
  test('is read by Millrace, and by the package on request', async () => {
    expect(isDirect(await load(protocol, 'http://127.0.0.1:9/v1'))).toBe(true)
    expect(isDirect(await load(protocol, 'http://127.0.0.1:9/v1', 'package'))).toBe(false)
  })

  test.each<[string, number, Record<string, string>]>([
    ['a refusal', 401, {}],
    ['a limit', 429, { 'retry-after': '7' }],
    ['a server error', 503, {}],
  ])('%s is told with its status and its reason, and the request is sent once', async (_, status, headers) => {
    let requests = 0
    const body = JSON.stringify({ error: { message: 'No', type: 'some', code: 'other', status: 'X' }, type: 'error' })
    const baseURL = await serve((response) => {
      requests++
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
    })
    const theirs = (await hear(await load(protocol, baseURL, 'package'))).error as MillraceError
    requests = 0
    const { error, parts } = await hear(await load(protocol, baseURL))
    expect(requests).toBe(1)
    expect(parts).toEqual([])
    const { code, retryAfter, message } = theirs
    expect(error).toMatchObject({ name: 'MillraceError', code, retryAfter, status, message })
  })

  test.each([
    ['', 'model-incomplete', 'without its final event'],
    ['data: {\n\n', 'model-incomplete', 'cut off'],
    ['<html><title>Log in</title></html>', 'model-incomplete', 'an HTML page: "Log in"'],
    ['data: {"error":{"message":"Overloaded","code":503}}\n\n', 'model-unavailable', 'Overloaded'],
    ['{"detail":[{"loc":["body","x"],"msg":"Field required"}]}', 'model-failed', 'body.x: Field required'],
  ])('an answer of %j is none', async (body, code, words) => {
    const baseURL = await serve((response) => begin(response).end(body))
    const { error, parts } = await hear(await load(protocol, baseURL))
    expect(error).toMatchObject({ name: 'MillraceError', code, message: expect.stringContaining(words) })
    expect(textOf(parts)).toBe('')
  })

  test('an empty status and a server that is not there', async () => {
    const baseURL = await serve((response) => response.writeHead(204).end())
    const empty = await hear(await load(protocol, baseURL))
    expect(empty.error).toMatchObject({ code: 'connection-lost', message: expect.stringContaining('an empty answer') })
    for (const close of closing.splice(0)) close()
    const { error } = await hear(await load(protocol, baseURL))
    expect(error).toMatchObject({ code: 'model-unavailable', message: expect.stringContaining('cannot be reached') })
  })

  test('a connection that breaks or stays open behind the end does not matter; before it, it does', async () => {
    const whole = answers[protocol]
    const play = async (frames: string[], after: 'open' | 'broken') => {
      const baseURL = await serve((response) => {
        begin(response).write(frames.join(''), () => after === 'broken' && response.destroy())
      })
      return hear(await load(protocol, baseURL))
    }
    for (const after of ['open', 'broken'] as const) {
      const { parts, error } = await play(whole, after)
      expect(error).toBeUndefined()
      expect(textOf(parts)).toBe('Hi')
      expect(parts.at(-1)).toMatchObject({ type: 'finish', finishReason: { unified: 'stop' } })
    }
    const { error } = await play(whole.slice(0, -2), 'broken')
    expect(error).toMatchObject({ code: 'connection-lost' })
  })

  test.each(['before the head', 'in the answer'])('a call that is stopped %s closes the connection', async (when) => {
    const controller = new AbortController()
    const closed = Promise.withResolvers<void>()
    const baseURL = await serve((response) => {
      response.on('close', closed.resolve)
      if (when === 'in the answer') begin(response).write(': waiting\n\n')
      setImmediate(() => controller.abort())
    })
    const { parts, error } = await hear(await load(protocol, baseURL), controller.signal)
    expect(error).toMatchObject({ code: 'aborted' })
    expect(textOf(parts)).toBe('')
    await closed.promise
  })
})

test('each delta arrives before the server writes the next', async () => {
  let response: ServerResponse
  const baseURL = await serve((given) => {
    response = begin(given)
    response.write(content('0'))
  })
  let next = 1
  const { parts, error } = await hear(await load('openai-chat', baseURL), undefined, (part) => {
    if (part.type !== 'text-delta') return
    if (next < 20) response.write(content(`${next++}`))
    else response.end(stop)
  })
  expect(error).toBeUndefined()
  expect(parts.filter(({ type }) => type === 'text-delta')).toHaveLength(20)
})

test('while the run is not ready, the connection is paused: the server cannot send on', async () => {
  const chunk = content('x'.repeat(1000)).repeat(64)
  let sent = 0
  const full = Promise.withResolvers<void>()
  const baseURL = await serve((response) => {
    begin(response)
    const write = () => {
      while (sent < 250) {
        sent++
        if (response.write(chunk)) continue
        // Far more than sockets buffer would have gone by then.
        setTimeout(full.resolve, 200)
        response.once('drain', write)
        return
      }
      response.end(stop)
    }
    write()
  })
  const gate = Promise.withResolvers<void>()
  let paused: 'not yet' | 'now' | 'before' = 'not yet'
  let heardMeanwhile = 0
  const model = await load('openai-chat', baseURL)
  const onPart = () => void (heardMeanwhile += paused === 'now' ? 1 : 0)
  const hearing = hear(model, undefined, onPart, () => {
    if (paused !== 'not yet') return undefined
    paused = 'now'
    return gate.promise
  })
  await full.promise
  expect(sent).toBeLessThan(200)
  expect(paused).toBe('now')
  expect(heardMeanwhile).toBe(0)
  paused = 'before'
  gate.resolve()
  const { parts, error } = await hearing
  expect(error).toBeUndefined()
  expect(textOf(parts)).toHaveLength(250 * 64 * 1000)
})

describe("Google's long answers take several requests", () => {
  const piece = (text: string, rest: object = {}) =>
    event({ candidates: [{ content: { parts: [{ text }] }, ...rest }], usageMetadata: { candidatesTokenCount: 1 } })
  const cut = (text: string) => piece(text, { finishReason: 'CONTINUATION', continuationToken: `after ${text}` })

  test.each<DecoderName>(['millrace', 'package'])('read by %s', async (decoder) => {
    const tokens: unknown[] = []
    const baseURL = await serve((response, { continuationToken, contents }) => {
      tokens.push(continuationToken)
      expect(contents).toBeDefined()
      const answers = [cut('a'), cut('b'), piece('c', { finishReason: 'STOP' })]
      begin(response).end(answers[tokens.length - 1])
    })
    const { parts, error } = await hear(await load('google', baseURL, decoder))
    expect(error).toBeUndefined()
    expect(tokens).toEqual([undefined, 'after a', 'after b'])
    expect(textOf(parts)).toBe('abc')
    expect(parts.at(-1)).toMatchObject({ type: 'finish', usage: { outputTokens: { total: 3 } } })
  })

  test('a refused continuation fails the answer', async () => {
    let requests = 0
    const baseURL = await serve((response) => {
      if (requests++ === 0) begin(response).end(cut('a'))
      else response.writeHead(429).end(JSON.stringify({ error: { code: 429, message: 'No', status: 'X' } }))
    })
    const { parts, error } = await hear(await load('google', baseURL))
    expect(requests).toBe(2)
    expect(textOf(parts)).toBe('a')
    expect(error).toMatchObject({ code: 'rate-limited' })
  })
})

test('an answer that is complete but for its usage waits a moment for it, then the connection is closed', async () => {
  const closed = Promise.withResolvers<void>()
  const quiet = Promise.withResolvers<void>()
  const baseURL = await serve((response) => {
    response.on('close', closed.resolve)
    begin(response).write(content('Hi') + stop)
  })
  const timers = vi.spyOn(globalThis, 'setTimeout').mockImplementation((run: () => void, ms?: number) => {
    if (ms === 1000) void quiet.promise.then(run)
    return original(() => undefined, 0)
  })
  try {
    const hearing = hear(await load('openai-chat', baseURL), undefined, ({ type }) => {
      if (type === 'text-delta') setImmediate(quiet.resolve)
    })
    const { parts, error } = await hearing
    expect(error).toBeUndefined()
    expect(parts.at(-1)).toMatchObject({ type: 'finish', finishReason: { unified: 'stop' } })
    await closed.promise
  } finally {
    timers.mockRestore()
  }
})

test('a connection whose answer has ended is used again', async () => {
  let connections = 0
  const server = createServer((request, response) => {
    request.resume().on('end', () => begin(response).end(answers['openai-chat'].join('')))
  }).listen(0, '127.0.0.1')
  server.on('connection', () => connections++)
  closing.push(() => server.close().closeAllConnections())
  await once(server, 'listening')
  const model = await load('openai-chat', `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`)
  for (let i = 0; i < 6; i++) expect((await hear(model)).error).toBeUndefined()
  // The last bytes of a body may come behind those of its answer: then a second one is opened.
  expect(connections).toBeLessThanOrEqual(2)
})

test('a fetch that somebody has put in its place is read, too', async () => {
  const { fetch } = globalThis
  globalThis.fetch = async () => new Response(content('theirs') + stop)
  try {
    const { parts, error } = await hear(await load('openai-chat', 'http://127.0.0.1:9/v1'))
    expect(error).toBeUndefined()
    expect(textOf(parts)).toBe('theirs')
  } finally {
    globalThis.fetch = fetch
  }
})
