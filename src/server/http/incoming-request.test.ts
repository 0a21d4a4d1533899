import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { readJson } from './body.ts'
import type { Handler } from '../handler-context.ts'
import { errorResponse } from '../../delivery/http-error.ts'
import { realRequest } from './incoming-request.ts'
import { listen } from './listen.contract.ts'

/** What the server says to these bytes, until it hangs up. */
async function say(port: number, bytes: string | Buffer): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(bytes)
  let text = ''
  for await (const piece of socket.setEncoding('utf8')) text += piece
  return text
}

const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"a":"ü"}' }

test('to a handler of somebody else it is a Request like any other', async () => {
  const said: unknown[] = []
  const { url } = await listen(async (request) => {
    said.push(request instanceof Request, request.method, request.url, request.bodyUsed, request.redirect)
    said.push(await request.clone().json(), await request.text(), request.bodyUsed)
    return Response.json(null)
  })
  await fetch(`${url}/x`, post)
  expect(said).toEqual([true, 'POST', `${url}/x`, false, 'follow', { a: 'ü' }, '{"a":"ü"}', true])
})

test("Node's own functions take the real one, which is made once and fires with the connection", async () => {
  const asked = Promise.withResolvers<Request>()
  const { port } = await listen(async (request) => {
    const copy = new Request(realRequest(request))
    expect(realRequest(request)).toBe(realRequest(request))
    expect([copy.method, copy.headers.get('x-a'), await copy.text()]).toEqual(['PUT', 'b', 'hi'])
    asked.resolve(realRequest(request))
    return new Promise(() => undefined)
  })
  const socket = connect(port, '127.0.0.1')
  socket.write('PUT / HTTP/1.1\r\nHost: x\r\nX-A: b\r\nContent-Length: 2\r\n\r\nhi')
  const { signal } = await asked.promise
  expect(signal.aborted).toBe(false)
  socket.resetAndDestroy()
  await once(signal, 'abort')
})

test.each([
  ['/a/../b/./c?d=%C3%A9', 'http://here/b/c?d=%C3%A9'],
  ['http://elsewhere:81/a', 'http://elsewhere:81/a'],
  ['//evil/x', 'http://here//evil/x'],
])('the target %s is the address %s', async (target, url) => {
  const { port } = await listen(async (request) => Response.json(request.url))
  const said = await say(port, `GET ${target} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n`)
  expect(said).toContain(JSON.stringify(url))
})

test('the target is read as URL reads it, behind any host', async () => {
  const { port } = await listen(async (request) => Response.json(request.url))
  const hosts = ['here', 'here:80', 'here:81', 'HERE', 'here/a', 'here?a', '1.2', 'xn--a', 'a_b', '[::1]:5', 'h%65re']
  const targets = [
    '/',
    '/a/b-c_d/',
    '//a',
    '/a?b=c&d=',
    '/a.b',
    '/a/../b',
    '/a?',
    '/%7e',
    '/a?b#c',
    "/a?'",
    '/ü',
    'a',
    '?a',
  ]
  for (const host of hosts) {
    for (const target of targets) {
      const head = Buffer.from(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`, 'latin1')
      const said = await say(port, head)
      const url = URL.parse(`http://${host}${target}`)?.href
      if (said.startsWith('HTTP/1.1 200')) expect(said, `${host} ${target}`).toContain(JSON.stringify(url))
      else
        expect([said.slice(0, 12), url === undefined || !target.startsWith('/') || target === '/ü']).toEqual([
          'HTTP/1.1 400',
          true,
        ])
    }
  }
})

test.each([
  ['a host that is none', 'GET / HTTP/1.1\r\nHost: a b'],
  ['credentials in the address', 'GET http://a:b@here/ HTTP/1.1\r\nHost: here'],
  ['a method that no Request has', 'TRACE / HTTP/1.1\r\nHost: here'],
])('%s is malformed', async (_, head) => {
  const { port, failures } = await listen(async () => Response.json('taken'))
  expect(await say(port, `${head}\r\nConnection: close\r\n\r\n`)).toMatch(/^HTTP\/1\.1 400 [^]*malformed/u)
  expect(failures).toEqual([])
})

test.each(['GET', 'HEAD', 'POST'])(
  'a NUL in a header of %s is malformed, also if the parser is told to accept it',
  async (method) => {
    const { port, failures } = await listen(async () => Response.json('taken'), { insecureHTTPParser: true })
    expect(await say(port, `${method} / HTTP/1.1\r\nHost: here\r\nX: a\0b\r\nConnection: close\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 400 /u,
    )
    expect(failures).toEqual([])
  },
)

const head = 'POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n'
const chunked = `${head}Transfer-Encoding: chunked\r\n\r\n`

function reading(before: (request: Request) => unknown = () => undefined): Handler {
  return async (request) => {
    try {
      await before(request)
      return Response.json({ read: await readJson(request, 1000) })
    } catch (error) {
      return errorResponse(error as Error)
    }
  }
}

const long = 'x'.repeat(2000)

test.each([
  ['in one piece', `${head}Content-Length: 10\r\n\r\n{"a":"ü"}`, '{"read":{"a":"ü"}}'],
  ['in chunks', `${chunked}3\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n`, '{"read":{"a":1}}'],
  ['empty', `${head}Content-Length: 0\r\n\r\n`, 'The body is empty'],
  ['too long by its announcement', `${head}Content-Length: 2000\r\n\r\n${long}`, 'larger than 1000 bytes'],
  ['too long by what arrives', `${chunked}7d0\r\n${long}\r\n0\r\n\r\n`, 'larger than 1000 bytes'],
  [
    'no UTF-8',
    Buffer.concat([Buffer.from(`${head}Content-Length: 3\r\n\r\n`), Buffer.from([0x22, 0xff, 0x22])]),
    'not valid UTF-8',
  ],
])('a body is read as it comes, without and behind a real request: %s', async (_, bytes, said) => {
  for (const before of [undefined, realRequest]) {
    const { port, failures } = await listen(reading(before))
    expect(await say(port, bytes)).toContain(said)
    expect(failures).toEqual([])
  }
})

test('requests of one connection follow each other at once', async () => {
  let told = Promise.withResolvers<string>()
  let asked = 0
  const { port, failures } = await listen(async (request) => {
    asked++
    return Response.json(await readJson(request, 1000))
  })
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.setEncoding('utf8').on('data', (piece: string) => {
    text += piece
    told.resolve(text)
  })
  const ask = (n: number) =>
    `POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{"n":${n}}`
  for (let n = 0; n < 5; n++) {
    told = Promise.withResolvers()
    socket.write(ask(n))
    await told.promise
  }
  socket.write(ask(5) + ask(6) + ask(7))
  while (!text.includes('{"n":7}')) {
    told = Promise.withResolvers()
    await told.promise
  }
  expect(text.match(/\{"n":\d\}/gu)).toEqual([0, 1, 2, 3, 4, 5, 6, 7].map((n) => `{"n":${n}}`))
  expect([failures, asked, socket.destroyed]).toEqual([[], 8, false])
  socket.destroy()
})

test('a character may lie across two pieces', async () => {
  const { port } = await listen(reading())
  const [a, b] = [Buffer.from([0x22, 0xc3]), Buffer.from([0xbc, 0x22])].map((half) =>
    Buffer.concat([Buffer.from('2\r\n'), half, Buffer.from('\r\n')]),
  )
  const bytes = Buffer.concat([Buffer.from(`${chunked}5\r\n{"a":\r\n`), a!, b!, Buffer.from('1\r\n}\r\n0\r\n\r\n')])
  expect(await say(port, bytes)).toContain('{"read":{"a":"ü"}}')
})

test.each(['while it is read', 'before it is read'])(
  'a body that breaks off %s is told and waits no longer',
  async (when) => {
    const told = Promise.withResolvers<unknown>()
    const asked = Promise.withResolvers<void>()
    const { port, failures } = await listen(async (request) => {
      asked.resolve()
      if (when === 'before it is read') await once(request.signal, 'abort')
      const read = readJson(request, 1000)
      read.catch(told.resolve)
      return Response.json(await read.catch(() => null))
    })
    const socket = connect(port, '127.0.0.1')
    socket.write(`${head}Content-Length: 100\r\n\r\n{"a"`)
    await asked.promise
    socket.resetAndDestroy()
    expect(await told.promise).toMatchObject({ code: 'bad-request', message: expect.stringContaining('cut off') })
    expect(failures).toEqual([])
  },
)

const kept = head.replace('Connection: close\r\n', '')

test('a body that nobody has read ends with the response, also behind a real request: its connection stays', async () => {
  const { port, server, failures } = await listen(async (request) => {
    realRequest(request)
    return new Response('refused', { status: 401, headers: { 'content-type': 'application/json' } })
  })
  const socket = connect(port, '127.0.0.1').setEncoding('utf8')
  for (let n = 0; n < 2; n++) {
    const received = once(server, 'request') as Promise<[IncomingMessage]>
    socket.write(`${kept}Content-Length: 10\r\n\r\n`)
    const [message] = await received
    const ended = once(message, 'end')
    expect(String((await once(socket, 'data'))[0])).toContain('401')
    socket.write('0123456789')
    // The connection of one that does not end is closed after a second.
    await ended
  }
  expect([failures, socket.destroyed]).toEqual([[], false])
  socket.destroy()
})

test.each([
  ['while it arrives, behind its response', '0123456789'],
  ['when it has been discarded', 'The rest of this body was discarded'],
])('a body that is first read %s', async (when, said) => {
  const read = Promise.withResolvers<string>()
  const { port, server } = await listen(async (request) => {
    const text = () =>
      void realRequest(request)
        .text()
        .then(read.resolve, (error: Error) => read.resolve(error.message))
    realRequest(request)
    if (when === 'when it has been discarded') ended.promise.then(text, read.reject)
    else text()
    return Response.json('early')
  })
  const ended = Promise.withResolvers<void>()
  server.on('request', (message: IncomingMessage) => message.on('end', ended.resolve))
  const socket = connect(port, '127.0.0.1').setEncoding('utf8')
  socket.write(`${kept}Content-Length: 10\r\n\r\n01234`)
  await once(socket, 'data')
  socket.write('56789')
  expect(await read.promise).toContain(said)
  socket.destroy()
})
