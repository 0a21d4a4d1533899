/** A model server for tests: OpenAI's chat protocol over a real socket, each request answered by a function. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface UpstreamReply {
  /** Accepts the request: status and headers go out. */
  accept(): void
  say(text: string): void
  call(id: string, name: string, args: unknown): void
  /** Says that the answer is complete, and ends. */
  finish(reason?: string): void
  refuse(status: number, body: unknown, headers?: Record<string, string>): void
  /** The connection breaks. */
  drop(): void
  /** The body ends without saying that the answer is complete. */
  end(): void
  /** Resolves when our side has closed the connection before the answer was complete. */
  left: Promise<void>
  body: { messages: { role: string; content: unknown }[]; tools?: unknown[] }
}

export interface Upstream {
  /** For `endpoints: [{name, baseURL}]`. */
  baseURL: string
  requests: UpstreamReply[]
  close(): Promise<void>
}

export async function startUpstream(answer: (reply: UpstreamReply, n: number) => unknown): Promise<Upstream> {
  const requests: UpstreamReply[] = []
  const server = createServer((request, response) => {
    void readText(request).then((text) => {
      const reply = createReply(response, text)
      requests.push(reply)
      return answer(reply, requests.length)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

function createReply(response: ServerResponse, text: string): UpstreamReply {
  const left = Promise.withResolvers<void>()
  response.on('close', () => {
    if (!response.writableFinished) left.resolve()
  })
  const accept = () => {
    if (response.headersSent) return
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
  }
  const send = (choice: object, rest: object = {}) => {
    accept()
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [choice], ...rest }
    response.write(`data: ${JSON.stringify(chunk)}\n\n`)
  }
  return {
    accept,
    say: (content) => send({ index: 0, delta: { role: 'assistant', content } }),
    call(id, name, args) {
      const call = { index: 0, id, type: 'function', function: { name, arguments: JSON.stringify(args) } }
      send({ index: 0, delta: { role: 'assistant', tool_calls: [call] } })
    },
    finish(reason = 'stop') {
      send({ index: 0, delta: {}, finish_reason: reason })
      response.end('data: [DONE]\n\n')
    },
    refuse(status, body, headers = {}) {
      const json = typeof body === 'string' ? body : JSON.stringify(body)
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(json)
    },
    drop: () => response.destroy(),
    end: () => response.end(),
    left: left.promise,
    body: JSON.parse(text) as UpstreamReply['body'],
  }
}

async function readText(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return Buffer.concat(pieces).toString()
}
