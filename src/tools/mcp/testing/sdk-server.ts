/**
 * A server made with the official SDK, run directly by Node: over stdio, or over HTTP with `OVER=http`. `ERA`: `both` (default), `modern` or `legacy`. It writes
 * its pid, the methods of all requests, and what its tools do to `JOURNAL`.
 */
import { appendFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  createMcpHandler,
  inputRequired,
  McpServer,
  WebStandardStreamableHTTPServerTransport,
  type McpServerFactory,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

const note = (line: string) => appendFileSync(process.env['JOURNAL']!, `${line}\n`)
const era = process.env['ERA'] ?? 'both'
const words = (text: string) => ({ content: [{ type: 'text' as const, text }] })

// Programs that the pool starts must be gone behind a test.
if (process.env['OVER'] !== 'http') note(`pid ${process.pid}`)
let hasGrown = false
const servers = new Set<McpServer>()

const makeServer: McpServerFactory = () => {
  const server = new McpServer(
    { name: 'sdk', version: '1' },
    { capabilities: { tools: { listChanged: true } }, requestState: { verify: (state) => state } },
  )
  servers.add(server)
  const text = z.object({ text: z.string() })
  server.registerTool('echo', { description: 'Says it again', inputSchema: text }, (given) => {
    note(`echo ${given.text}`)
    return words(`You said ${given.text}`)
  })
  const pair = z.object({ a: z.number(), b: z.number() })
  server.registerTool('add', { inputSchema: pair, outputSchema: z.object({ sum: z.number() }) }, ({ a, b }) => ({
    ...words(String(a + b)),
    structuredContent: { sum: a + b },
  }))
  server.registerTool('fail', { inputSchema: z.object({}) }, () => ({ ...words('It is closed.'), isError: true }))
  server.registerTool('hold', { inputSchema: z.object({}) }, async (_, ctx) => {
    note('hold')
    const { signal } = ctx.mcpReq
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    note('hold stopped')
    return words('stopped')
  })
  server.registerTool('grow', { inputSchema: z.object({}) }, () => {
    hasGrown = true
    for (const each of servers) addGrown(each)
    handler.notify.toolsChanged()
    return words('grown')
  })
  server.registerTool('ask', { description: 'Asks for a colour', inputSchema: z.object({}) }, (_, ctx) => ask(ctx))
  server.registerTool('open', { description: 'Asks to open a page', inputSchema: z.object({}) }, (_, ctx) => {
    const reply = repliesIn(ctx)['page']
    if (reply !== undefined) return words(`page: ${JSON.stringify(reply)}`)
    const page = inputRequired.elicitUrl({
      message: 'Sign in, please.',
      url: 'https://login.example/start?of=the%20person',
    })
    return inputRequired({ inputRequests: { page }, requestState: 'page' })
  })
  if (hasGrown) addGrown(server)
  return server
}

function addGrown(server: McpServer): void {
  try {
    server.registerTool('grown', { inputSchema: z.object({}) }, () => words('I am new.'))
  } catch {
    // It has the tool.
  }
}

/** Byte for byte: all that JSON may escape. */
export const state = `s "quoted" \\ \u00e9 \u{1f600} \u2028 ${'x'.repeat(1000)}`

function repliesIn(ctx: ServerContext): Record<string, unknown> {
  return (ctx.mcpReq.inputResponses ?? {}) as Record<string, unknown>
}

function ask(ctx: ServerContext) {
  const reply = repliesIn(ctx)['colour']
  const brought: unknown = ctx.mcpReq.requestState()
  note(`ask ${reply === undefined ? 'first' : JSON.stringify(reply)} ${brought === state ? 'state' : String(brought)}`)
  if (reply !== undefined) return words(`colour: ${JSON.stringify(reply)}`)
  const colour = inputRequired.elicit({
    message: 'Which colour?\u202e',
    requestedSchema: {
      type: 'object',
      properties: { colour: { type: 'string', enum: ['red', 'blue'] } },
      required: ['colour'],
    },
  })
  return inputRequired({ inputRequests: { colour }, requestState: state })
}

const handler = createMcpHandler(makeServer, era === 'modern' ? { legacy: 'reject' } : {})

if (process.env['OVER'] === 'http') overHttp()
else if (era === 'legacy') {
  const server = await makeServer({ era: 'legacy' })
  await server.connect(new StdioServerTransport())
  noteStdin()
} else {
  serveStdio(makeServer, era === 'modern' ? { legacy: 'reject' } : {})
  noteStdin()
}

function noteStdin(): void {
  let rest = ''
  process.stdin.on('data', (chunk: Buffer) => {
    const lines = `${rest}${chunk.toString()}`.split('\n')
    rest = lines.pop()!
    for (const line of lines) noteMethod(line)
  })
}

function noteMethod(body: string): void {
  const { method } = JSON.parse(body) as { method?: string }
  if (method !== undefined) note(`method ${method}`)
}

function overHttp(): void {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    if (body.length > 0) noteMethod(body.toString())
    const given = new Request(`http://127.0.0.1${request.url}`, {
      method: request.method!,
      headers: Object.entries(request.headers).flatMap(([name, value]) =>
        typeof value === 'string' ? [[name, value]] : [],
      ) as [string, string][],
      ...(body.length > 0 && { body }),
      signal: abortOf(response),
    })
    const answer = await (era === 'legacy' ? ofSession(given) : handler.fetch(given))
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    response.flushHeaders()
    if (answer.body !== null) {
      try {
        for await (const chunk of answer.body) response.write(chunk)
      } catch {
        // The client has gone.
      }
    }
    response.end()
  }

  /** With sessions, as servers that ask have them. */
  async function ofSession(request: Request): Promise<Response> {
    const known = sessions.get(request.headers.get('mcp-session-id') ?? '')
    if (known !== undefined) return known.handleRequest(request)
    if (request.headers.has('mcp-session-id')) return new Response(null, { status: 404 })
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void sessions.set(id, transport),
    })
    const server = await makeServer({ era: 'legacy' })
    await server.connect(transport)
    return transport.handleRequest(request)
  }

  const http = createServer((request, response) => void respond(request, response))
  http.listen(Number(process.env['PORT'] ?? 0), '127.0.0.1', () => {
    console.log(`PORT ${(http.address() as AddressInfo).port}`)
  })
}

function abortOf(response: ServerResponse): AbortSignal {
  const stop = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) stop.abort()
  })
  return stop.signal
}
