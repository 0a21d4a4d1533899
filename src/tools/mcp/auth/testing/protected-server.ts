/** A real MCP server on loopback that accepts only tokens of its authorization server for itself. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose'
import { z } from 'zod'

export interface ProtectedServer {
  url: string
  origin: string
  /** The tokens that came, and for what: JSON-RPC methods, or `GET` and the like. */
  calls: { method: string; token: string | undefined; headers: IncomingMessage['headers'] }[]
  /** All addresses that were asked for. */
  addresses: string[]
  /** Tokens that count no more. */
  refused: Set<string>
  /** What its metadata say instead. */
  metadata: Record<string, unknown>
  /** Where it sends all requests for tools. */
  redirect: string | undefined
  /** Requests wait for this. */
  hold: Promise<void> | undefined
  close(): Promise<void>
}

export async function openProtectedServer(issuer: string): Promise<ProtectedServer> {
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`))
  const http = createServer((request, response) => {
    answer(request).then(
      (found) => {
        response.writeHead(found.status, Object.fromEntries(found.headers))
        if (found.body === null) response.end()
        else Readable.fromWeb(found.body as never).pipe(response)
      },
      // The server closes, and a client says farewell.
      () => response.destroy(),
    )
  })
  await new Promise<void>((done) => http.listen(0, '127.0.0.1', done))
  const origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`

  const handler = createMcpHandler(({ authInfo }) => {
    const server = new McpServer({ name: 'protected', version: '1' })
    const { token = '', clientId = '' } = authInfo ?? {}
    server.registerTool('whoami', { inputSchema: z.object({}) }, () => text(`${clientId} ${decodeJwt(token).sub}`))
    server.registerTool('echo_token', { inputSchema: z.object({}) }, () => text(`token: ${token}!`))
    server.registerTool('fail_with_token', { inputSchema: z.object({}) }, () => {
      throw new Error(`no, ${token}`)
    })
    return server
  })

  async function answer(incoming: IncomingMessage): Promise<Response> {
    const { method = 'GET', url = '/', headers } = incoming
    opened.addresses.push(url)
    if (url.startsWith('/.well-known/oauth-protected-resource')) {
      if (url !== '/.well-known/oauth-protected-resource/mcp') return new Response(null, { status: 404 })
      const own = { resource: opened.url, authorization_servers: [issuer], scopes_supported: ['read', 'files'] }
      return Response.json({ ...own, ...opened.metadata })
    }
    const pieces: Buffer[] = []
    for await (const piece of incoming) pieces.push(piece as Buffer)
    const body = Buffer.concat(pieces)
    const token = headers.authorization?.replace(/^Bearer /u, '')
    opened.calls.push({ method: body.length > 0 ? JSON.parse(body.toString()).method : method, token, headers })
    if (opened.redirect !== undefined && token !== undefined) {
      return new Response(null, { status: 307, headers: { location: opened.redirect } })
    }
    await opened.hold
    const payload =
      token === undefined || opened.refused.has(token)
        ? undefined
        : await jwtVerify(token, keys, { issuer, audience: opened.url }).then(
            (verified) => verified.payload,
            () => undefined,
          )
    if (payload === undefined) {
      const challenge = `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp", scope="read"`
      return new Response(null, { status: 401, headers: { 'www-authenticate': challenge } })
    }
    const init = { method, headers: headers as Record<string, string>, ...(body.length > 0 && { body }) }
    const authInfo = { token: token!, clientId: String(payload['client_id']), scopes: [] }
    return handler.fetch(new Request(origin + url, init), { authInfo })
  }

  const opened: ProtectedServer = {
    url: `${origin}/mcp`,
    origin,
    calls: [],
    addresses: [],
    refused: new Set(),
    metadata: {},
    redirect: undefined,
    hold: undefined,
    async close() {
      await handler.close()
      await new Promise((done) => void http.close(done).closeAllConnections())
    },
  }
  return opened
}

const text = (words: string) => ({ content: [{ type: 'text' as const, text: words }] })
