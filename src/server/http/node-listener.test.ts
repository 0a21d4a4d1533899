import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { listen } from './listen.contract.ts'

test('a body that gives something else than bytes breaks off, is left, and the server goes on', async () => {
  const left = Promise.withResolvers<void>()
  const { url } = await listen(async ({ url: asked }) => {
    if (asked.endsWith('/health')) return new Response('well')
    const start = (controller: ReadableStreamDefaultController) => controller.enqueue(5)
    return new Response(new ReadableStream({ start, cancel: () => left.resolve() }))
  })
  await expect(fetch(url).then((response) => response.text())).rejects.toThrow('terminated')
  await left.promise
  expect(await (await fetch(`${url}/health`)).text()).toBe('well')
})

test('headers leave before the first chunk', async () => {
  const chunk = Promise.withResolvers<string>()
  const { url } = await listen(async () => {
    const body = new ReadableStream({
      async pull(controller) {
        controller.enqueue(new TextEncoder().encode(await chunk.promise))
        controller.close()
      },
    })
    return new Response(body, { status: 201, headers: { 'x-early': 'yes' } })
  })
  const response = await fetch(url)
  expect([response.status, response.headers.get('x-early')]).toEqual([201, 'yes'])
  chunk.resolve('late')
  expect(await response.text()).toBe('late')
})

/** What arrives, piece by piece. */
async function raw(port: number): Promise<string[]> {
  const socket = connect(port, '127.0.0.1').setEncoding('utf8')
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  const pieces: string[] = []
  for await (const piece of socket) pieces.push(String(piece))
  return pieces
}

test('a first chunk that is there already leaves together with the headers', async () => {
  const { port, server } = await listen(async () => {
    const body = new ReadableStream({
      pull(controller) {
        controller.enqueue(new TextEncoder().encode('early'))
        controller.close()
      },
    })
    return new Response(body)
  })
  const sent: string[] = []
  server.on('connection', (socket) => {
    const { _write: write, _writev: writev } = socket
    socket._write = (chunk, ...rest) => (sent.push(String(chunk)), write.call(socket, chunk, ...rest))
    socket._writev = (chunks, done) => (
      sent.push(chunks.map(({ chunk }) => chunk).join('')),
      writev!.call(socket, chunks, done)
    )
  })
  await raw(port)
  expect(sent[0]).toMatch(/^HTTP\/1.1 200 OK\r\n[^]*\r\n\r\n5\r\nearly\r\n/)
})

test('a body that fails before its first chunk has its headers, and looks incomplete', async () => {
  const { port } = await listen(async () => {
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error('broken')) })
    return new Response(body, { status: 201 })
  })
  expect((await raw(port)).join('')).toMatch(/^HTTP\/1.1 201 Created\r\n[^]*\r\n\r\n$/)
})

test('a body that fails is an incomplete transfer; what it had said arrives', async () => {
  const { url, port } = await listen(async () => {
    let pulls = 0
    const body = new ReadableStream(
      {
        pull(controller) {
          if (pulls++ === 0) controller.enqueue(new TextEncoder().encode('half'))
          else controller.error(new Error('broken'))
        },
      },
      { highWaterMark: 0 },
    )
    return new Response(body)
  })
  await expect(fetch(url).then((response) => response.text())).rejects.toThrow()
  const socket = connect(port, '127.0.0.1').setEncoding('utf8')
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  let all = ''
  for await (const piece of socket) all += String(piece)
  expect(all).toMatch(/\r\n4\r\nhalf\r\n$/)
})

test.each(['before the answer', 'while it is streamed'])(
  'request.signal fires when the client goes %s',
  async (when) => {
    const asked = Promise.withResolvers<Request>()
    const { port, failures } = await listen((request) => {
      asked.resolve(request)
      if (when === 'before the answer') return new Promise(() => undefined)
      return Promise.resolve(new Response(new ReadableStream({ pull: (c) => c.enqueue(new Uint8Array(10)) })))
    })
    const socket = connect(port, '127.0.0.1')
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}')
    const { signal } = await asked.promise
    expect(signal.aborted).toBe(false)
    socket.resetAndDestroy()
    await once(signal, 'abort')
    expect(failures).toEqual([])
  },
)

test('a request that was answered in full is not aborted', async () => {
  let signal: AbortSignal | undefined
  const { url } = await listen(async (request) => {
    signal = request.signal
    return Response.json({ ok: true })
  })
  const response = await fetch(url, { headers: { connection: 'close' } })
  expect(response.headers.get('content-length')).toBe('11')
  expect(await response.json()).toEqual({ ok: true })
  await new Promise((resolve) => setImmediate(resolve))
  expect(signal!.aborted).toBe(false)
})

test('method, target, headers and body arrive; cookies go one by one', async () => {
  const { url } = await listen(async (request) => {
    const { pathname, search } = new URL(request.url)
    const said = [request.method, pathname + search, request.headers.get('x-a'), await request.text()]
    const response = Response.json(said)
    response.headers.append('set-cookie', 'a=1; Expires=Wed, 21 Oct 2015 07:28:00 GMT')
    response.headers.append('set-cookie', 'b=2')
    return response
  })
  const body = 'é'.repeat(100_000)
  const response = await fetch(`${url}/a/b%20c?d=%C3%A9`, { method: 'PUT', body, headers: { 'x-a': '1, 2' } })
  expect(await response.json()).toEqual(['PUT', '/a/b%20c?d=%C3%A9', '1, 2', body])
  expect(response.headers.getSetCookie()).toEqual(['a=1; Expires=Wed, 21 Oct 2015 07:28:00 GMT', 'b=2'])
})

test('a handler that throws is told of, and its client is not left waiting', async () => {
  const { url, failures } = await listen(() => Promise.reject(new Error('bug')))
  await expect(fetch(url)).rejects.toThrow()
  expect(failures).toMatchObject([{ message: 'bug' }])
})

test('a client that does not read stops the body from being made', async () => {
  let made = 0
  const { port } = await listen(async () => {
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      made += 65_536
      controller.enqueue(new Uint8Array(65_536))
    }
    return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }))
  })
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(socket, 'readable')
  // Whatever the sockets of the system hold is made; then it stands still.
  for (let before = -1; before !== made;) {
    before = made
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  expect(made).toBeLessThan(30_000_000)
})
