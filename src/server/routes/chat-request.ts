/** Reads the requests of the chat routes. */
import { omitUndefined } from '../../part/omit-undefined.ts'
import { MillraceError } from '../../part/error.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import type { DisconnectPolicy, Pipeline } from '../../pipeline/pipeline.ts'
import { type Turn, turnKey } from '../../runtime/continue.ts'
import { startersPolicy } from '../../runtime/disconnect-policy.ts'
import { listedAgents } from '../../runtime/runtime-errors.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { textWire } from '../../wire/text/text.ts'
import type { UiOptions } from '../../wire/ui/ui-chunk.ts'
import { fromClientMessages, toolAnswers } from '../../wire/ui/ui-message.ts'
import { uiWire } from '../../wire/ui/ui.ts'
import type { Wire } from '../../wire/wire.ts'
import type { HandlerContext, RequestContext } from '../handler-context.ts'
import { agentOfTurn, readPipeline } from '../turn/own-pipeline.ts'
import { preferredType, bad } from '../http/query.ts'
import { optionalText, readJson } from '../http/body.ts'

export interface ChatWire {
  wire: Wire
  options: Partial<UiOptions>
}

/** The wire that the URL names (`?format=`), or that the client accepts. Throws `bad-input`. */
export function readWire({ wires }: HandlerContext, request: Request, otherwise: Wire): ChatWire {
  const format = request.url.includes('?') ? new URL(request.url).searchParams.get('format') : null
  if (format !== null) return { wire: namedWire(wires, format), options: optionsOf(request) }
  const wanted = preferredType(request, ['text/plain', 'text/event-stream'])
  const wire = wanted === undefined ? otherwise : wanted === 'text/plain' ? textWire : uiWire
  return { wire, options: optionsOf(request) }
}

/** The log contains prompts, so a chat cannot request it. */
function namedWire(wires: ReadonlyMap<string, Wire>, format: string): Wire {
  const wire = wires.get(format)
  if (wire !== undefined && wire.showsLog !== true) return wire
  const known = [...wires.values()].filter(({ showsLog }) => showsLog !== true).map(({ name }) => name)
  throw bad('format', `one of ${known.join(', ')}${didYouMean(format.slice(0, 60), known)}`)
}

function optionsOf({ headers }: Request): Partial<UiOptions> {
  return { ui7: headers.get('x-millrace-ui') === '7' }
}

/** A chat's turn, and the pipeline that a run of it has. */
export interface ReadChat {
  turn: Turn
  pipeline: Pipeline | undefined
}

export async function readChat(context: RequestContext, request: Request, wire: Wire): Promise<ReadChat> {
  const { runtime, maxBodyBytes } = context
  const body = await readJson(request, maxBodyBytes)
  const agentId = optionalText(body, 'agentId')
  if (agentId === undefined) {
    const known = listedAgents(runtime.agents).map(({ id }) => id)
    throw new MillraceError('bad-input', `agentId is missing. Known agents: ${known.join(', ') || 'none'}.`)
  }
  const threadId = optionalText(body, 'id')
  const agent = runtime.agents.get(agentId)
  const text = agent && readPipeline(context, request, body, { agent: agent.id })
  const now = agent && (await agentOfTurn(context, agent, omitUndefined({ threadId, pipeline: text })))
  const turn: Turn = {
    agentId,
    messages: fromClientMessages(body['messages']),
    answers: toolAnswers(body['messages']),
    input: inputOf(body),
    protocol: wire.name,
    traceparent: request.headers.get('traceparent'),
    onBusy: 'interrupt',
    steers: true,
    history: 'client',
    ...omitUndefined({
      threadId,
      labels: threadId === undefined ? undefined : { chatId: threadId },
      // Message ids are unique only within a thread: some clients count from 1.
      turnKey: threadId === undefined ? undefined : turnKey(body),
      pipeline: now?.pipeline,
    }),
  }
  return { turn, pipeline: now?.agent.pipeline }
}

/** The disconnect policy of a chat. Clients can return to a run only if the store is durable; otherwise it stops. */
export function chatPolicy({ store }: Runtime, pipeline: Pipeline | undefined): DisconnectPolicy {
  return startersPolicy(pipeline, 'ui', store.durable)
}

/** All other keys of the body are input for the pipeline. */
function inputOf(body: Record<string, unknown>): Record<string, unknown> {
  const { agentId, messages, id, trigger, messageId, pipeline, ...input } = body
  void [agentId, messages, id, trigger, messageId, pipeline]
  return input
}

/** For routes that show conversations by id. Throws `forbidden` if callers are not authenticated. */
export function checkShown({ isPrivate }: Pick<HandlerContext, 'isPrivate'>): void {
  if (isPrivate) return
  const why = 'Conversations are shown only where it is decided who may see them'
  throw new MillraceError('forbidden', `${why}: give createHandler an "authorize" or an "apiKey".`)
}
