/**
 * `POST /mcp` and `POST /mcp/<agent>`: the agents as tools of the Model Context Protocol, of its modern version (2026-07-28) and the three before it,
 * chosen for each request (`inbound.ts`). Nothing is kept between two requests, so any instance answers any of them.
 *
 * A request is read and classified here; `methods.ts` has the methods.
 */
import { MillraceError } from '../../part/error.ts'
import { unknownAgent } from '../../runtime/runtime-errors.ts'
import type { HandlerContext, RequestContext } from '../handler-context.ts'
import { readJsonValue } from '../http/body.ts'
import type { Routes } from '../http/routes.ts'
import { asEvents, asJson, type Framing } from './call-stream.ts'
import { modernVersion, readModern, type McpClient } from './inbound.ts'
import {
  codes,
  readMessage,
  resultMessage,
  RpcError,
  rpcErrorResponse,
  toRpcError,
  type RpcMessage,
  type RpcRequest,
} from './json-rpc.ts'
import { answerMethod, capabilitiesOf, noteMessage } from './methods.ts'
import { mountResourceMetadata, challengeOf } from './resource-metadata.ts'
import { initialize, readLegacy, sessionHeader } from './session.ts'
import type { McpServices } from './settings.ts'
import type { ToolScope } from './tools.ts'

export function isMcpPath(path: string): boolean {
  return path === '/mcp' || (path.startsWith('/mcp/') && !path.startsWith('/mcp/connect/'))
}

export function mountMcp(routes: Routes, { mcp }: HandlerContext): void {
  if (mcp === undefined) return
  const post = (context: RequestContext, request: Request, only?: string) => answerPost({ context, mcp, request, only })
  // Each method has an action of its own: see methods.ts.
  routes.post('/mcp', 'agents.list', (context, { raw }) => post(context, raw))
  routes.post('/mcp/:agent', 'agents.list', (context, request) => post(context, request.raw, request.param('agent')))
  mountResourceMetadata(routes, mcp)
}

/** A refusal before the request was read. */
export function mcpRefusal(error: MillraceError, mcp: McpServices, request: Request): Response {
  return rpcErrorResponse(toRpcError(error), undefined, challengeOf(mcp, request))
}

interface Post {
  context: RequestContext
  mcp: McpServices
  request: Request
  /** The agent in the path. */
  only: string | undefined
}

async function answerPost(post: Post): Promise<Response> {
  const { context, request } = post
  try {
    const scope = scopeOf(post)
    const body = await readJsonValue(request, context.maxBodyBytes)
    return Array.isArray(body)
      ? await answerBatch(post, scope, body)
      : await answerMessage(post, scope, readMessage(body))
  } catch (error) {
    return failed(context, error)
  }
}

function failed({ onError }: RequestContext, error: unknown, id?: RpcRequest['id']): Response {
  const known = toRpcError(error)
  if (known.status >= 500 || (known.code === codes.internal && known.status === 200)) onError(error)
  return rpcErrorResponse(known, id)
}

function scopeOf({ context, mcp, only }: Post): ToolScope {
  const { agents } = mcp.options
  const { agents: source } = context.runtime
  const agent = only === undefined ? undefined : source.get(only)
  const isOffered = agents === undefined || agents.some((name) => source.get(name)?.id === agent?.id)
  if (only !== undefined && (agent === undefined || !isOffered)) throw unknownAgent(only, source)
  return { only: agent?.id, agents }
}

async function answerMessage(post: Post, scope: ToolScope, message: RpcMessage): Promise<Response> {
  const { context, mcp, request } = post
  const { headers } = request
  if (message.kind === 'response') {
    if (headers.get('mcp-protocol-version')?.trim() === modernVersion) throw noResponses()
    const client = await readLegacy(context, mcp, headers)
    await noteMessage({ context, mcp, client, message })
    return new Response(null, { status: 202 })
  }
  const id = message.kind === 'request' ? message.id : undefined
  try {
    const modern = readModern(message, headers)
    if (message.kind === 'request' && modern === undefined && message.method === 'initialize') {
      return await begin(post, message)
    }
    const client = modern ?? (await readLegacy(context, mcp, headers))
    return await answerFrom(post, scope, client, message)
  } catch (error) {
    return failed(context, error, id)
  }
}

async function answerFrom(
  { context, mcp, request }: Post,
  scope: ToolScope,
  client: McpClient,
  message: Exclude<RpcMessage, { kind: 'response' }>,
  framing = framingOf(request),
): Promise<Response> {
  const { headers } = request
  const session = client.era === 'legacy' ? (headers.get(sessionHeader) ?? undefined) : undefined
  if (message.kind === 'notification') {
    await noteMessage({ context, mcp, client, message, session })
    return new Response(null, { status: 202 })
  }
  const { id, method, params } = message
  return answerMethod({ context, mcp, client, id, method, params, headers, scope, framing, session }, request)
}

async function begin({ context, mcp }: Post, { id, params }: RpcRequest): Promise<Response> {
  const { result, session } = await initialize(context, mcp, params, capabilitiesOf('legacy'))
  return Response.json(resultMessage(id, result), { headers: { [sessionHeader]: session } })
}

/** Of 2025-03-26 only. */
async function answerBatch(post: Post, scope: ToolScope, batch: unknown[]): Promise<Response> {
  const { context, mcp, request } = post
  const version = request.headers.get('mcp-protocol-version')?.trim()
  if (version === modernVersion) throw badBatch(`MCP ${version} has no batches`)
  const client = await readLegacy(context, mcp, request.headers)
  if (client.version !== '2025-03-26') throw badBatch(`MCP ${client.version} has no batches`)
  if (batch.length === 0 || batch.length > mostInBatch) throw badBatch(`a batch has 1 to ${mostInBatch} messages`)
  const messages = batch.map(readMessage)
  if (messages.some((message) => message.kind !== 'response' && readsAsOther(message, request.headers)))
    throw badBatch('a batch has neither initialize nor messages of newer versions')
  const answers = messages.map(async (message) => {
    if (message.kind === 'response') {
      await noteMessage({ context, mcp, client, message })
      return ''
    }
    const id = message.kind === 'request' ? message.id : undefined
    const response = await answerFrom(post, scope, client, message, asJson).catch((error: unknown) =>
      failed(context, error, id),
    )
    return textOf(response, request.signal)
  })
  const texts = (await Promise.all(answers)).filter((text) => text !== '')
  if (texts.length === 0) return new Response(null, { status: 202 })
  return new Response(`[${texts.join(',')}]`, { headers: { 'content-type': 'application/json' } })
}

const mostInBatch = 50

function readsAsOther(message: Exclude<RpcMessage, { kind: 'response' }>, headers: Headers): boolean {
  return message.method === 'initialize' || readModern(message, headers) !== undefined
}

/** Reads a body. When the client leaves, the body is cancelled, which stops what it follows. */
async function textOf(response: Response, signal: AbortSignal): Promise<string> {
  const reader = response.body?.getReader()
  if (reader === undefined) return ''
  const cancel = () => void reader.cancel().catch(() => undefined)
  signal.addEventListener('abort', cancel, { once: true })
  const decoder = new TextDecoder()
  let text = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return text.trim()
      text += decoder.decode(value, { stream: true })
    }
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** A client that does not name event streams gets one JSON. Whatever the weights are: most name both in every request. */
function framingOf({ headers }: Request): Framing {
  const named = /(?:^|,)\s*text\/event-stream\s*(?:,|$|;\s*q=(?!0(?:\.0*)?\s*(?:,|$)))/iu
  return named.test(headers.get('accept') ?? '') ? asEvents : asJson
}

function noResponses(): RpcError {
  const cure = 'Send what you were asked in params.inputResponses of the same request.'
  return new RpcError(codes.invalidRequest, `MCP ${modernVersion} has no responses of clients. ${cure}`, {
    status: 400,
  })
}

function badBatch(why: string): RpcError {
  return new RpcError(codes.invalidRequest, `The body is a batch: ${why}.`, { status: 400 })
}
