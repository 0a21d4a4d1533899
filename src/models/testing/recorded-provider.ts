/**
 * A fake provider for tests: a local HTTP server that answers each request with the next recorded reply, in the provider's event
 * format, optionally split into pieces of any size, cut off after any line, or replaced by an error status.
 */
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Protocol = 'openai-chat' | 'openai-responses' | 'anthropic' | 'google'

export type Reply = StreamReply | ErrorReply
export interface StreamReply {
  protocol: Protocol
  /** The chunks, as JSON texts. */
  lines: readonly string[]
  /** Bytes per piece. Pieces may split lines and UTF-8 characters. Default: one piece. */
  cut?: number
  /** The connection breaks after this many lines. */
  dropAfter?: number
  /** The response ends normally after this many lines, without the rest. */
  endAfter?: number
}
export interface ErrorReply {
  status: number
  body: string
  headers?: Record<string, string>
}

export interface RecordedRequest {
  path: string
  headers: IncomingMessage['headers']
  body: unknown
}

export interface RecordedProvider {
  /** `http://127.0.0.1:<port>/v1` */
  baseURL: string
  requests: RecordedRequest[]
  close(): Promise<void>
}

/** Sends the replies in order, then repeats the last one. */
export async function startRecordedProvider(replies: readonly Reply[]): Promise<RecordedProvider> {
  const requests: RecordedRequest[] = []
  const server = createServer((request, response) => {
    // Errors contain the headers of their response, and tests compare two of them.
    response.sendDate = false
    void readBody(request).then((body) => {
      // The client disconnected before it had sent its request.
      if (body === '') return void response.destroy()
      const reply = replies[Math.min(requests.length, replies.length - 1)]!
      requests.push({ path: request.url ?? '', headers: request.headers, body: JSON.parse(body) })
      if ('status' in reply) {
        response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers }).end(reply.body)
      } else send(response, reply)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    baseURL: `http://127.0.0.1:${port}/v1`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Reads a recording: one JSON chunk per line. */
export function readLines(file: string | URL): string[] {
  return readFileSync(file, 'utf8').split('\n').filter(Boolean)
}

function send(response: ServerResponse, { protocol, lines, cut, dropAfter, endAfter }: StreamReply): void {
  const count = Math.min(dropAfter ?? lines.length, endAfter ?? lines.length)
  const isWhole = count === lines.length && dropAfter === undefined
  const done = protocol === 'openai-chat' && isWhole ? 'data: [DONE]\n\n' : ''
  const bytes = Buffer.from(
    lines
      .slice(0, count)
      .map((line) => frame(protocol, line))
      .join('') + done,
  )
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
  // Each write is a separate HTTP chunk, and `fetch` keeps chunks separate even if they share a packet.
  const size = cut ?? Math.max(1, bytes.length)
  for (let at = 0; at < bytes.length; at += size) response.write(bytes.subarray(at, at + size))
  if (dropAfter === undefined) response.end()
  else if (bytes.length === 0) response.destroy()
  else response.write('\n', () => response.destroy())
}

function frame(protocol: Protocol, line: string): string {
  const event = protocol === 'anthropic' ? `event: ${(JSON.parse(line) as { type: string }).type}\n` : ''
  return `${event}data: ${line}\n\n`
}

/** Empty if the connection broke before the end of the body. */
async function readBody(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  try {
    for await (const piece of request) pieces.push(piece as Buffer)
  } catch {
    return ''
  }
  return request.complete ? Buffer.concat(pieces).toString() : ''
}
