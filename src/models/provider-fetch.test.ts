import { type IncomingMessage, type RequestListener } from 'node:http'
import { once } from 'node:events'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { createProviderFetch } from './provider-fetch.ts'
import {
  providerFetch,
  fetch,
  dispatcher,
  servers,
  setDispatcher,
  serve,
  forbidFetch,
  post,
} from './testing/scripted-provider.ts'

void globalThis.Headers
afterEach(() => {
  globalThis.fetch = fetch
  setDispatcher(dispatcher)
  for (const server of servers.splice(0)) server.close().closeAllConnections()
})

/** Sends a raw response, which Node's HTTP server would not produce. */
async function answerRaw(text: string): Promise<string> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end(text))
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  let text = ''
  for await (const piece of incoming.setEncoding('utf8')) text += piece
  return text
}

test('requests to several addresses in turn go where each is addressed', async () => {
  const echo: RequestListener = (incoming, outgoing) => outgoing.end(`${incoming.headers.host}${incoming.url}`)
  const [one, two] = [await serve(echo), await serve(echo)]
  const urls = [`${one}/a?x=1`, `${one}/a?x=1`, `${two}/a?x=1`, `${one}/a?x=2`, `${one}/b`, `${two}/b`]
  const answers: string[] = []
  for (const url of urls) answers.push(await (await providerFetch(url, post)).text())
  expect(answers).toEqual(urls.map((url) => url.slice('http://'.length)))
})

test('a post goes to the dispatcher of the process and not through its fetch', async () => {
  const url = await serve(async (incoming, outgoing) => {
    const { method, headers } = incoming
    const said = { method, url: incoming.url, headers, body: await textOf(incoming) }
    outgoing.writeHead(200, { 'content-type': 'application/json', 'x-two': ['a', 'b'] }).end(JSON.stringify(said))
  })
  forbidFetch()
  const headers = { ...post.headers, 'X-Mine': 'yes', accept: 'text/event-stream' }
  const response = await providerFetch(`${url}/v1/chat?a=b`, { ...post, headers, signal: new AbortController().signal })
  expect(response).toMatchObject({ status: 200, statusText: 'OK', ok: true })
  expect(response.headers.get('x-two')).toBe('a, b')
  expect(await response.json()).toMatchObject({
    method: 'POST',
    url: '/v1/chat?a=b',
    body: post.body,
    headers: {
      'content-type': 'application/json',
      'content-length': '10',
      'x-mine': 'yes',
      accept: 'text/event-stream',
    },
  })
})

test('a dispatcher that the process was given is asked, as fetch would ask it', async () => {
  const url = await serve((_, outgoing) => outgoing.end('there'))
  const asked: unknown[] = []
  setDispatcher({
    dispatch(request: unknown, handler: unknown) {
      asked.push(request)
      return dispatcher.dispatch(request, handler)
    },
  })
  expect(await (await providerFetch(url, post)).text()).toBe('there')
  expect(asked).toMatchObject([{ origin: url, path: '/', method: 'POST' }])
})

test('a fetch that somebody has put in its place is asked', async () => {
  const asked: unknown[] = []
  globalThis.fetch = async (...request) => (asked.push(request), new Response('theirs'))
  expect(await (await providerFetch('http://127.0.0.1:9/', post)).text()).toBe('theirs')
  expect(asked).toEqual([['http://127.0.0.1:9/', { ...post, redirect: 'manual' }]])
})

test('where there is no dispatcher the platform is asked', async () => {
  const url = await serve((_, outgoing) => outgoing.end('there'))
  let asked = 0
  const own = fetch.toString()
  const counting: typeof fetch = async (...args) => {
    asked++
    setDispatcher(dispatcher)
    return fetch(...args)
  }
  globalThis.fetch = Object.assign(counting, { toString: () => own })
  setDispatcher(undefined)
  expect(await (await providerFetch(url, post)).text()).toBe('there')
  expect(asked).toBe(1)
})

test('a refusal has its status, its headers and its body', async () => {
  const url = await serve((_, outgoing) => outgoing.writeHead(429, { 'retry-after': '7' }).end('{"error":"slow"}'))
  forbidFetch()
  const response = await providerFetch(url, post)
  expect(response).toMatchObject({ status: 429, ok: false })
  expect(response.headers.get('retry-after')).toBe('7')
  expect(await response.text()).toBe('{"error":"slow"}')
})

test.each([
  ['400 错误请求', 400],
  ['418 Ich bin müde', 418],
])('a status line may be in any language: %s', async (line, status) => {
  const url = await answerRaw(`HTTP/1.1 ${line}\r\ncontent-length: 2\r\n\r\nno`)
  forbidFetch()
  const response = await providerFetch(url, post)
  expect(response.status).toBe(status)
  expect(await response.text()).toBe('no')
})

test('a status that no response can have is a failure, and nothing waits', async () => {
  const url = await answerRaw('HTTP/1.1 999 Nope\r\ncontent-length: 2\r\n\r\nno')
  forbidFetch()
  await expect(providerFetch(url, post)).rejects.toThrow('fetch failed')
})

test('headers are taken in all their forms, and from around their values spaces and line breaks', async () => {
  const url = await serve((incoming, outgoing) => outgoing.end(JSON.stringify(incoming.headers)))
  forbidFetch()
  const forms: NonNullable<RequestInit['headers']>[] = [
    { authorization: 'Bearer k\n' },
    [['Authorization', 'Bearer k']],
    new Headers({ authorization: 'Bearer k' }),
  ]
  for (const headers of forms) {
    expect(await (await providerFetch(url, { ...post, headers })).json()).toMatchObject({ authorization: 'Bearer k' })
  }
})

test('a name and a password in the address are refused, as fetch refuses them', async () => {
  await expect(providerFetch('http://me:secret@127.0.0.1:1/v1', post)).rejects.toThrow('credentials')
})

test('an answer without a body has none', async () => {
  const url = await serve((_, outgoing) => outgoing.writeHead(204).end())
  forbidFetch()
  expect(await providerFetch(url, post)).toMatchObject({ status: 204, body: null })
})

test('it is followed to where it is sent on to, with its body', async () => {
  const url = await serve(async (incoming, outgoing) => {
    if (incoming.url === '/') outgoing.writeHead(307, { location: '/there' }).end('gone')
    else outgoing.end(`${incoming.method} ${await textOf(incoming)}`)
  })
  expect(await (await providerFetch(`${url}/`, post)).text()).toBe(`POST ${post.body}`)
})

test.each([
  ['gzip', gzipSync],
  ['br', brotliCompressSync],
] as const)('what was compressed all the same (%s) can be read', async (encoding, compress) => {
  let accepted: unknown
  const url = await serve((incoming, outgoing) => {
    accepted = incoming.headers['accept-encoding']
    outgoing.writeHead(200, { 'content-encoding': encoding }).end(compress('data: all of it\n\n'))
  })
  forbidFetch()
  expect(await (await providerFetch(url, post)).text()).toBe('data: all of it\n\n')
  expect(accepted).toBe('identity')
})

test('pieces come as they are sent', async () => {
  const heard = Promise.withResolvers<void>()
  const url = await serve(async (_, outgoing) => {
    outgoing.write('one')
    await heard.promise
    outgoing.end('two')
  })
  forbidFetch()
  const { body } = await providerFetch(url, post)
  const reader = body!.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
  expect(await reader.read()).toEqual({ done: false, value: 'one' })
  heard.resolve()
  expect(await reader.read()).toEqual({ done: false, value: 'two' })
  expect(await reader.read()).toMatchObject({ done: true })
})

test('what one read of the socket brings is one piece, and what came before it breaks off is there', async () => {
  const { port, close } = await new Promise<{ port: number; close(): void }>((resolve) => {
    const server = createTcpServer((socket) => {
      const chunks = ['one', 'two', 'and'].map((text) => `3\r\n${text}\r\n`).join('')
      socket.once('data', () => socket.end(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`))
    })
    server.listen(0, '127.0.0.1', () => {
      resolve({ port: (server.address() as AddressInfo).port, close: () => void server.close() })
    })
  })
  forbidFetch()
  const reader = (await providerFetch(`http://127.0.0.1:${port}`, post)).body!.getReader()
  expect(Buffer.from((await reader.read()).value!).toString()).toBe('onetwoand')
  await expect(reader.read()).rejects.toThrow('terminated')
  close()
})

test('a signal that has fired asks nobody', async () => {
  const reason = new Error('stopped')
  await expect(providerFetch('http://127.0.0.1:9', { ...post, signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
})

test('a signal ends what is asked before it is answered', async () => {
  const came = Promise.withResolvers<void>()
  const left = Promise.withResolvers<void>()
  const url = await serve((incoming) => {
    incoming.socket.on('close', left.resolve)
    came.resolve()
  })
  forbidFetch()
  const stop = new AbortController()
  const asked = providerFetch(url, { ...post, signal: stop.signal })
  await came.promise
  const reason = new Error('stopped')
  stop.abort(reason)
  await expect(asked).rejects.toBe(reason)
  await left.promise
})

test.each(['its signal fires', 'its reader leaves'])('an answer is cut off when %s', async (how) => {
  const left = Promise.withResolvers<void>()
  const url = await serve((_, outgoing) => {
    outgoing.on('close', left.resolve)
    outgoing.write('one')
  })
  forbidFetch()
  const stop = new AbortController()
  const reader = (await providerFetch(url, { ...post, signal: stop.signal })).body!.getReader()
  await reader.read()
  const next = reader.read()
  const reason = new Error('stopped')
  if (how === 'its reader leaves') {
    await reader.cancel(reason)
    expect(await next).toMatchObject({ done: true })
  } else {
    stop.abort(reason)
    await expect(next).rejects.toBe(reason)
  }
  await left.promise
})

test('nobody there, and an answer that breaks off, are told in the words of fetch', async () => {
  const url = await serve((_, outgoing) => {
    outgoing.write('one')
    setImmediate(() => outgoing.destroy())
  })
  forbidFetch()
  const { body } = await providerFetch(url, post)
  await expect(new Response(body).text()).rejects.toMatchObject({ name: 'TypeError', message: 'terminated' })
  const refused = await serve(() => undefined)
  await new Promise((closed) => servers.pop()!.close(closed))
  await expect(providerFetch(refused, post)).rejects.toMatchObject({
    name: 'TypeError',
    message: 'fetch failed',
    cause: { code: 'ECONNREFUSED' },
  })
})

describe('redirects', () => {
  const secrets = { ...post, headers: { 'x-api-key': 'k', 'x-goog-api-key': 'k', authorization: 'Bearer k' } }

  test.each([
    [307, 'the dispatcher'],
    [308, 'the platform'],
    [302, 'the dispatcher'],
    [303, 'the platform'],
  ])('a %i to another origin is refused, and that origin is asked nothing (%s)', async (status, way) => {
    let asked = 0
    const stranger = await serve((_, outgoing) => (asked++, outgoing.end('thank you')))
    const url = await serve((_, outgoing) =>
      outgoing.writeHead(status, { location: `${stranger}/v1?token=hidden` }).end(),
    )
    if (way === 'the platform') globalThis.fetch = (...request) => fetch(...request)
    else forbidFetch()
    const error = await providerFetch(`${url}/v1?key=hidden`, secrets).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'redirect-refused', detail: `from ${url} to ${stranger}` })
    expect(JSON.stringify(error) + String(error)).not.toContain('hidden')
    expect(asked).toBe(0)
  })

  test.each(['the dispatcher', 'the platform'])('within an origin keys and body go along (%s)', async (way) => {
    const url = await serve(async (incoming, outgoing) => {
      const { headers, method } = incoming
      if (incoming.url === '/') return void outgoing.writeHead(308, { location: 'there?a=b' }).end('gone')
      const key = headers['x-api-key']
      outgoing.end(`${method} ${incoming.url} ${key as string} ${await textOf(incoming)}`)
    })
    if (way === 'the platform') globalThis.fetch = (...request) => fetch(...request)
    else forbidFetch()
    const response = await providerFetch(`${url}/`, secrets)
    expect(await response.text()).toBe(`POST /there?a=b k ${post.body}`)
  })

  test('a 303 is asked for with GET, and a circle ends', async () => {
    const url = await serve(async (incoming, outgoing) => {
      if (incoming.url === '/') outgoing.writeHead(303, { location: '/there' }).end()
      else if (incoming.url === '/circle') outgoing.writeHead(307, { location: '/circle' }).end()
      else outgoing.end(`${incoming.method} ${await textOf(incoming)}`)
    })
    expect(await (await providerFetch(`${url}/`, post)).text()).toBe('GET ')
    await expect(providerFetch(`${url}/circle`, post)).rejects.toMatchObject({ code: 'redirect-refused' })
  })
})

describe('limits', () => {
  const small = createProviderFetch({ who: 'box:tiny', limits: { lineBytes: 1000, bodyBytes: 10_000 } })
  const ways = ['the dispatcher', 'the platform']

  function go(way: string): void {
    if (way === 'the platform') globalThis.fetch = (...request) => fetch(...request)
    else forbidFetch()
  }

  /** Writes a text repeatedly until the client disconnects; returns how often. */
  async function endless(
    text: string,
    headers: Record<string, string> = {},
  ): Promise<{ url: string; left: Promise<void> }> {
    const left = Promise.withResolvers<void>()
    const url = await serve((_, outgoing) => {
      outgoing.on('close', left.resolve).writeHead(200, headers)
      const fill = () => {
        while (!outgoing.destroyed && outgoing.write(text));
      }
      outgoing.on('drain', fill)
      fill()
    })
    return { url, left: left.promise }
  }

  describe.each(ways)('by %s', (way) => {
    test.each([
      ['a line without an end', 'x', 'line-too-long', 'limits.lineBytes'],
      ['an event without an end', 'data: x\n', 'line-too-long', 'limits.lineBytes'],
      ['an event of lines that end in CRLF', 'data: x\r\n', 'line-too-long', 'limits.lineBytes'],
      ['an answer without an end', 'data: x\n\n', 'body-too-large', 'limits.bodyBytes'],
    ])('%s', async (_, text, code, limit) => {
      const { url, left } = await endless(text.repeat(100), { 'content-type': 'text/event-stream' })
      go(way)
      const response = await small(url, post)
      await expect(response.text()).rejects.toMatchObject({ code, message: expect.stringContaining(limit) })
      await left
    })

    test('JSON without an end', async () => {
      const { url, left } = await endless('[1,', { 'content-type': 'application/json' })
      go(way)
      await expect((await small(url, post)).text()).rejects.toMatchObject({ code: 'body-too-large' })
      await left
    })

    test('what is small and becomes large when it is decompressed', async () => {
      const bomb = gzipSync(Buffer.alloc(1 << 20, 'data: x\n\n'))
      const url = await serve((_, outgoing) => outgoing.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb))
      go(way)
      expect(bomb.length).toBeLessThan(10_000)
      await expect((await small(url, post)).text()).rejects.toMatchObject({ code: 'body-too-large' })
    })

    test('of the body of an error the beginning is read', async () => {
      const url = await serve((_, outgoing) => outgoing.writeHead(400).end('x'.repeat(1 << 20)))
      go(way)
      const response = await small(url, post)
      expect(response.status).toBe(400)
      expect((await response.text()).length).toBe(256 * 1024)
    })
  })

  test('what keeps within them is read whole, however it is cut', async () => {
    const events = `data: ${'x'.repeat(900)}\n\n`.repeat(10)
    const url = await serve((_, outgoing) => {
      for (let at = 0; at < events.length; at += 700) outgoing.write(events.slice(at, at + 700))
      outgoing.end()
    })
    forbidFetch()
    expect(await (await small(url, post)).text()).toBe(events)
  })
})
