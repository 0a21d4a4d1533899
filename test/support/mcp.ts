/** Clients of `/mcp`: the official one, in its modes, and plain requests. */
import { Client, StreamableHTTPClientTransport, type ClientOptions } from '@modelcontextprotocol/client'
import { onTestFinished } from 'vitest'

export type Mode = 'legacy' | 'auto' | 'pin'
export const modes: readonly Mode[] = ['legacy', 'auto', 'pin']

const modernVersion = '2026-07-28'

export interface Connecting {
  capabilities?: Record<string, unknown>
  headers?: Record<string, string>
  path?: string
}

/** The official client, connected. It is closed when the test ends. */
export async function connectMcp(
  server: { url: string },
  mode: Mode,
  { capabilities = {}, headers = {}, path = '/mcp' }: Connecting = {},
): Promise<Client> {
  const options: ClientOptions = {
    capabilities,
    versionNegotiation: { mode: mode === 'pin' ? { pin: modernVersion } : mode },
  }
  const client = new Client({ name: 'tester', version: '1.2.3' }, options)
  const transport = new StreamableHTTPClientTransport(new URL(server.url + path), { requestInit: { headers } })
  await client.connect(transport)
  onTestFinished(() => client.close())
  return client
}

/** The body of a modern request. */
export function modernBody(
  method: string,
  params: Record<string, unknown> = {},
  { id = 1, capabilities = {}, meta = {} }: { id?: string | number; capabilities?: object; meta?: object } = {},
) {
  return {
    jsonrpc: '2.0',
    id,
    method,
    params: {
      ...params,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': modernVersion,
        'io.modelcontextprotocol/clientCapabilities': capabilities,
        'io.modelcontextprotocol/clientInfo': { name: 'tester', version: '1.2.3' },
        ...meta,
      },
    },
  }
}

const nameOf = (params: Record<string, unknown>) => params['name'] ?? params['taskId'] ?? params['uri']

/** The headers that such a request must have. */
export function modernHeaders({ method, params }: { method: string; params: object }): Record<string, string> {
  const name = nameOf(params as Record<string, unknown>)
  return {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': modernVersion,
    'mcp-method': method,
    ...(typeof name === 'string' && { 'mcp-name': name }),
  }
}

export const withTasks = { extensions: { 'io.modelcontextprotocol/tasks': {} } }

export interface Rpc {
  id?: string | number
  result?: Record<string, unknown>
  error?: { code: number; message: string; data?: unknown }
}

/** Sends a modern request. */
export function postModern(
  server: { url: string },
  method: string,
  params: Record<string, unknown> = {},
  {
    path = '/mcp',
    headers = {},
    signal,
    ...rest
  }: Parameters<typeof modernBody>[2] & { path?: string; headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Response> {
  const body = modernBody(method, params, rest)
  return fetch(server.url + path, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { ...modernHeaders(body), ...headers },
    ...(signal && { signal }),
  })
}

/** The messages of a response, whatever it is. */
export async function messagesIn(
  response: Response,
): Promise<(Rpc & { method?: string; params?: Record<string, unknown> })[]> {
  const text = await response.text()
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return [JSON.parse(text) as Rpc]
  return text
    .split('\n\n')
    .filter((frame) => frame.includes('data: '))
    .map((frame) => JSON.parse(frame.slice(frame.indexOf('data: ') + 6)) as Rpc)
}

/** The last message of a modern request. */
export async function askModern(...given: Parameters<typeof postModern>): Promise<Rpc> {
  return (await messagesIn(await postModern(...given))).at(-1)!
}
