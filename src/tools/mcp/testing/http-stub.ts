/** A minimal MCP server over HTTP that can fail in many ways. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface HttpStub {
  url: string
  /** The requests so far: MCP methods, or `DELETE`. */
  told: string[]
  /** The headers of the last request. */
  headers: Record<string, unknown>
  /** Responses of calls to the tool `hold`, which wait. */
  held: ServerResponse[]
  /** Starts a new session; requests with the old session id get this status. */
  forget(status: number): void
  close(): Promise<void>
}

export async function startStub(): Promise<HttpStub> {
  const stub = { told: [] as string[], headers: {}, held: [] as ServerResponse[] }
  let session = 1
  let forgotten = 404
  const server = createServer((request, response) => {
    stub.headers = request.headers
    const fail = (status: number) => response.writeHead(status).end('<html>not for you</html>')
    const path = request.url?.split('?')[0]
    if (path === '/gone') return void fail(404)
    if (path === '/locked') return void fail(401)
    if (path === '/mute') return
    if (request.method === 'DELETE') stub.told.push('DELETE')
    if (request.method !== 'POST') return void fail(405)
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString())
      stub.told.push(method)
      if (method !== 'initialize' && request.headers['mcp-session-id'] !== String(session)) return void fail(forgotten)
      if (id === undefined) return void response.writeHead(202).end()
      const answer = (result: object) =>
        response
          .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': String(session) })
          .end(JSON.stringify({ jsonrpc: '2.0', id, result }))
      if (method === 'initialize') {
        return void answer({
          protocolVersion: '2025-06-18',
          capabilities: {},
          serverInfo: { name: 'stub', version: '1' },
        })
      }
      if (params?.name !== 'hold') return void answer({ content: [] })
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      stub.held.push(response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return Object.assign(stub, {
    url: `http://127.0.0.1:${port}`,
    forget: (status: number) => {
      forgotten = status
      session += 1
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  })
}
