/** The methods of MCP: what each is, which action it is for access, and which versions have it. */
import { decide, type Action } from '../../access/decide.ts'
import { notAllowed } from '../../access/scope-store.ts'
import type { RequestContext } from '../handler-context.ts'
import { serverInfo, toListResult, toResult, type Asked } from './asked.ts'
import { callTool, runOfLegacyCall } from './call-tool.ts'
import type { Era } from './content.ts'
import { supportedVersions, tasksExtension, type McpClient } from './inbound.ts'
import {
  codes,
  invalidParams,
  resultMessage,
  RpcError,
  type Fields,
  type RpcNotification,
  type RpcResponse,
} from './json-rpc.ts'
import type { McpServices } from './settings.ts'
import { noteAnswer } from './legacy-questions.ts'
import { ownValue } from '../../part/own-value.ts'
import { checkShown } from '../routes/chat-request.ts'
import { listen } from './listen.ts'
import { getPrompt, listPrompts } from './prompts.ts'
import { listResources, readResource, resourceTemplates } from './resources.ts'
import { cancelTask, getTask, updateTask } from './tasks.ts'
import { agentsIn, toTool } from './tools.ts'

interface Method {
  action: Action
  /** Only this era has it. */
  era?: Era
  answer(asked: Asked, request: Request): Promise<Response | Fields> | Response | Fields
}

/** A list has one page. */
const methods = new Map<string, Method>(
  Object.entries({
    'server/discover': {
      action: 'agents.list',
      era: 'modern',
      answer: ({ client }) =>
        toListResult(client, { supportedVersions, capabilities: capabilitiesOf('modern'), serverInfo }),
    },
    ping: { action: 'agents.list', era: 'legacy', answer: () => ({}) },
    'tools/list': {
      action: 'agents.list',
      answer: ({ context, client, scope }) =>
        toListResult(client, {
          tools: agentsIn(context.runtime.agents, scope).map((agent) =>
            toTool(agent, context.runtime.agents, client.era),
          ),
        }),
    },
    'tools/call': { action: 'runs.start', answer: callTool },
    'prompts/list': {
      action: 'agents.list',
      answer: ({ context, client, scope }) =>
        toListResult(client, { prompts: listPrompts(agentsIn(context.runtime.agents, scope)) }),
    },
    'prompts/get': { action: 'agents.list', answer: prompt },
    'resources/list': { action: 'runs.read', answer: resources },
    'resources/templates/list': {
      action: 'runs.read',
      answer: ({ client }) => toListResult(client, { resourceTemplates: resourceTemplates() }),
    },
    'resources/read': { action: 'runs.read', answer: resource },
    'subscriptions/listen': { action: 'agents.list', era: 'modern', answer: listen },
    'tasks/get': { action: 'runs.read', era: 'modern', answer: getTask },
    'tasks/update': { action: 'runs.answer', era: 'modern', answer: updateTask },
    'tasks/cancel': { action: 'runs.stop', era: 'modern', answer: cancelTask },
  } satisfies Record<string, Method>),
)

function prompt({ context, client, scope, params }: Asked): Fields {
  const agents = agentsIn(context.runtime.agents, scope)
  const found = getPrompt(agents, ownValue(params, 'name'), ownValue(params, 'arguments'))
  if ('unknown' in found) throw invalidParams('There is no such prompt.')
  if ('faults' in found) throw invalidParams(`${found.faults.join('; ')}.`)
  return toResult(client, found)
}

async function resources({ context, client, params }: Asked): Promise<Fields> {
  checkShown(context)
  const found = await listResources(context, ownValue(params, 'cursor'))
  if (found === undefined) throw invalidParams('params.cursor must be the nextCursor of an earlier list.')
  return toListResult(client, found)
}

async function resource({ context, client, params }: Asked): Promise<Fields> {
  checkShown(context)
  const uri = ownValue(params, 'uri')
  const contents = await readResource(context, uri)
  // One text for those that do not exist and those that are another caller's.
  if (contents === undefined) {
    const data = typeof uri === 'string' ? { uri: uri.slice(0, 2000) } : undefined
    throw new RpcError(codes.invalidParams, 'There is no such resource.', { data })
  }
  return toListResult(client, { contents })
}

/** What this server can. */
export function capabilitiesOf(era: Era): Fields {
  // Legacy clients would have to open a stream of their own to hear of changes.
  const both = { tools: {}, prompts: {}, resources: {} }
  return era === 'legacy'
    ? both
    : { ...both, tools: { listChanged: true }, prompts: { listChanged: true }, extensions: { [tasksExtension]: {} } }
}

export async function answerMethod(asked: Asked, request: Request): Promise<Response> {
  const { context, client, method, id } = asked
  const found = methods.get(method)
  if (found === undefined || (found.era !== undefined && found.era !== client.era)) throw unknownMethod(client, method)
  if (decide(context.principal, found.action) !== 'allow') throw notAllowed(found.action)
  const answer = await found.answer(asked, request)
  return answer instanceof Response || !isPlain(answer)
    ? (answer as Response)
    : Response.json(resultMessage(id, answer))
}

/** A light response is no instance of `Response`. */
function isPlain(answer: Response | Fields): answer is Fields {
  return !('body' in answer && 'headers' in answer)
}

function unknownMethod({ era }: McpClient, method: string): RpcError {
  const message = `There is no method ${JSON.stringify(method.slice(0, 100))}.`
  return new RpcError(codes.unknownMethod, message, { status: era === 'modern' ? 404 : 200 })
}

export interface Noted {
  context: RequestContext
  mcp: McpServices
  client: McpClient
  message: RpcNotification | RpcResponse
  session?: string | undefined
}

/** Takes a message that has no response. What it does not know is ignored, as JSON-RPC demands. */
export async function noteMessage({ context, mcp, client, message, session }: Noted): Promise<void> {
  if (message.kind === 'response') {
    if (decide(context.principal, 'runs.answer') === 'allow') await noteAnswer({ context, mcp, client }, message)
    return
  }
  if (message.kind !== 'notification' || message.method !== 'notifications/cancelled') return
  const { requestId } = message.params
  const isId = typeof requestId === 'string' || Number.isSafeInteger(requestId)
  if (client.era !== 'legacy' || session === undefined || !isId) return
  const run = await runOfLegacyCall(session, requestId as string | number)
  const row = await context.runtime.store.runs.get(run)
  if (row === undefined) return
  await context.runtime.stop(run, 'The client has cancelled its request.')
  context.audit('runs.stop', run, 'done')
}
