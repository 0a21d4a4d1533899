/** Models whose streams we read ourselves, against real servers and the real packages. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import type { ModelPart } from '../part/model-part.ts'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { createDirectModel } from './direct-model.ts'
import { streamModel } from './model.ts'
import { createProviderOpen } from './provider-fetch.ts'
import type { LanguageModel } from './language-model.ts'
import { isDirect } from './part-sink.ts'
import { loadModel, type DecoderName, type EndpointProtocol } from './providers.ts'

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
  const error: unknown = await streamModel(model, call, note, ready).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  return { parts, error }
}

/** Without the body of the request, which only the package's errors have as it was sent. */
function comparable({ parts, error }: Heard): unknown {
  const plain = (given: unknown): unknown => {
    if (!(given instanceof Error)) return given
    const { requestBodyValues: _, ...fields } = given as Error & { requestBodyValues?: unknown }
    return { ...fields, name: given.name, message: given.message, cause: plain(given.cause) }
  }
  return {
    parts: parts.map((part) => (part.type === 'error' ? { ...part, error: plain(part.error) } : part)),
    error: plain(error),
  }
}

const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
const content = (text: string) => event({ id: 'c', choices: [{ index: 0, delta: { content: text } }] })
const stop = event({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
const begin = (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/event-stream' })
const textOf = (parts: ModelPart[]) => parts.map((part) => (part.type === 'text-delta' ? part.delta : '')).join('')

const protocols: EndpointProtocol[] = ['openai-chat', 'openai-responses', 'anthropic', 'google']

describe.each(protocols)('%s', (protocol) => {
  test('is read by Millrace, and by the package on request', async () => {
    const baseURL = await serve((response) => begin(response).end())
    const { TextDecoderStream: Original } = globalThis
    let made = 0
    globalThis.TextDecoderStream = class extends Original {
      constructor() {
        super()
        made++
      }
    }
    onTestFinished(() => void (globalThis.TextDecoderStream = Original))
    const ours = await load(protocol, baseURL)
    expect(isDirect(ours)).toBe(true)
    await hear(ours)
    // Every package reads through this stream.
    expect(made).toBe(0)
    const theirs = await load(protocol, baseURL, 'package')
    expect(isDirect(theirs)).toBe(false)
    await hear(theirs)
    expect(made).toBe(1)
  })

  const refusals: [string, number, Record<string, string>][] = [
    ['a refusal', 401, {}],
    ['a limit', 429, { 'retry-after': '7' }],
    ['a server error', 503, {}],
    ['a status without a body', 204, {}],
  ]
  test.each(refusals)(
    '%s is told as the package tells it, and the request is sent once',
    async (_, status, headers) => {
      let requests = 0
      const body = JSON.stringify({ error: { message: 'No', type: 'some', code: 'other', status: 'X' }, type: 'error' })
      const baseURL = await serve((response) => {
        requests++
        response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(status === 204 ? '' : body)
      })
      const theirs = await hear(await load(protocol, baseURL, 'package'))
      requests = 0
      const ours = await hear(await load(protocol, baseURL))
      expect(requests).toBe(1)
      expect(ours.error).toMatchObject({ name: 'MillraceError' })
      expect(comparable(ours)).toEqual(comparable(theirs))
    },
  )

  test.each(['', 'data: {\n\n', '<html>No</html>', 'data: {"error":{"message":"Overloaded","code":503}}\n\n'])(
    'an answer of %j is told as the package tells it',
    async (body) => {
      const baseURL = await serve((response) => begin(response).end(body))
      const theirs = await hear(await load(protocol, baseURL, 'package'))
      const ours = await hear(await load(protocol, baseURL))
      expect(ours.error).toMatchObject({ name: 'MillraceError' })
      expect(comparable(ours)).toEqual(comparable(theirs))
    },
  )

  test('a server that is not there', async () => {
    const baseURL = await serve(() => undefined)
    for (const close of closing.splice(0)) close()
    const theirs = await hear(await load(protocol, baseURL, 'package'))
    const ours = await hear(await load(protocol, baseURL))
    expect(ours.error).toMatchObject({ code: 'model-unavailable' })
    expect(comparable(ours)).toEqual(comparable(theirs))
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
      while (sent < 400) {
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
  expect(sent).toBeLessThan(300)
  expect(paused).toBe('now')
  expect(heardMeanwhile).toBe(0)
  paused = 'before'
  gate.resolve()
  const { parts, error } = await hearing
  expect(error).toBeUndefined()
  expect(textOf(parts)).toHaveLength(400 * 64 * 1000)
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

  test('a refused continuation is told as the package tells it', async () => {
    let requests = 0
    const baseURL = await serve((response) => {
      if (requests++ % 2 === 0) begin(response).end(cut('a'))
      else response.writeHead(429).end(JSON.stringify({ error: { code: 429, message: 'No', status: 'X' } }))
    })
    const theirs = await hear(await load('google', baseURL, 'package'))
    const ours = await hear(await load('google', baseURL))
    expect(requests).toBe(4)
    expect(ours.parts.find(({ type }) => type === 'error')).toMatchObject({ error: { code: 'rate-limited' } })
    expect(comparable(ours)).toEqual(comparable(theirs))
  })
})

test('a package that cannot be watched reads the answer itself', async () => {
  const baseURL = await serve((response) => begin(response).end(content('theirs') + stop))
  const model = createDirectModel({
    create: (fetch) => createOpenAICompatible({ name: 'local', baseURL, fetch })('m'),
    open: createProviderOpen({ who: 'local:m' }),
    createDecoder: () => expect.unreachable(),
  })
  const { parts, error } = await hear(model)
  expect(error).toBeUndefined()
  expect(textOf(parts)).toBe('theirs')
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
