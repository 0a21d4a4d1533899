/**
 * What a load balancer has to do for Millrace, on `node:http`: it asks `/health` every half second, takes the instances in turn, sends what one
 * refuses with a 503, or cannot take, to the next, and passes everything on as it comes. No sessions, but for the polling of Socket.IO.
 */
import { createServer, request, type ClientRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream'

export interface Balancer {
  url: string
  close(): Promise<void>
}

const healthEveryMs = 500
const maxBodyBytes = 4 * 1024 * 1024

export async function startBalancer(instances: readonly URL[], port: number): Promise<Balancer> {
  const healthy = new Set(instances)
  let turn = 0

  function look(instance: URL): void {
    const asked = request(new URL('/health', instance), { timeout: 1000 }, (answer) => {
      answer.resume()
      if (answer.statusCode === 200) healthy.add(instance)
      else healthy.delete(instance)
    })
    asked.on('timeout', () => asked.destroy())
    asked.on('error', () => healthy.delete(instance))
    asked.end()
  }

  /** The instances to try, in order. Socket.IO keeps a session in one instance, so a client that polls always asks the same. */
  function inOrder({ url = '', socket }: IncomingMessage): URL[] {
    const up = instances.filter((instance) => healthy.has(instance))
    const all = up.length > 0 ? up : [...instances]
    const at = url.startsWith('/socket.io/') ? sum(socket.remoteAddress ?? '') : turn++
    return all.map((_, i) => all[(at + i) % all.length]!)
  }

  function send(incoming: IncomingMessage, instance: URL): ClientRequest {
    const { method, url, headers } = incoming
    return request({ host: instance.hostname, port: instance.port, method, path: url, headers, agent: false })
  }

  function pass(incoming: IncomingMessage, body: Buffer, response: ServerResponse, [instance, ...rest]: URL[]): void {
    const outgoing = send(incoming, instance!)
    const leave = () => outgoing.destroy()
    response.on('close', leave)
    const next = () => {
      response.off('close', leave)
      pass(incoming, body, response, rest)
    }
    outgoing.on('response', (answer) => {
      if (answer.statusCode === 503 && rest.length > 0) {
        answer.resume()
        return next()
      }
      response.writeHead(answer.statusCode!, answer.rawHeaders)
      response.flushHeaders()
      // If the instance breaks off, so does this: a client must see that there was no end.
      pipeline(answer, response, () => undefined)
    })
    outgoing.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (response.headersSent || response.destroyed) return response.destroy()
      // What an instance may have begun is not sent twice.
      const isUntouched = code === 'ECONNREFUSED' || incoming.method === 'GET'
      if (isUntouched && rest.length > 0) return next()
      response.writeHead(502).end()
    })
    outgoing.end(body)
  }

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = []
    let bytes = 0
    for await (const piece of incoming as AsyncIterable<Buffer>) {
      bytes += piece.length
      if (bytes > maxBodyBytes) return void response.writeHead(413, { connection: 'close' }).end()
      pieces.push(piece)
    }
    pass(incoming, Buffer.concat(pieces), response, inOrder(incoming))
  }

  const server = createServer((incoming, response) => {
    answer(incoming, response).catch(() => response.destroy())
  })

  server.on('upgrade', (incoming, socket, head) => {
    const outgoing = send(incoming, inOrder(incoming)[0]!)
    outgoing.on('error', () => socket.destroy())
    outgoing.on('response', (refused) => socket.end(`HTTP/1.1 ${refused.statusCode} \r\nconnection: close\r\n\r\n`))
    outgoing.on('upgrade', (accepted, upstream, first) => {
      const { rawHeaders: lines } = accepted
      const headers = lines.map((word, i) => (i % 2 === 0 ? `${word}: ` : `${word}\r\n`)).join('')
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${headers}\r\n`)
      socket.write(first)
      upstream.write(head)
      pipeline(upstream, socket, upstream, () => undefined)
    })
    outgoing.end()
  })

  const looking = setInterval(() => instances.forEach(look), healthEveryMs)
  await new Promise<void>((done, fail) => server.once('error', fail).listen(port, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      clearInterval(looking)
      const closed = new Promise((done) => server.close(done))
      server.closeAllConnections()
      await closed
    },
  }
}

function sum(text: string): number {
  return [...text].reduce((total, letter) => total + letter.charCodeAt(0), 0)
}
