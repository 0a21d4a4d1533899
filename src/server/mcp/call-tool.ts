/** `tools/call`: starts a run of the agent, or joins the run that this very call has started before, and answers with its result. */
import { isBoundToRequest } from '../../async/bound-to-request.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { MillraceError } from '../../part/error.ts'
import { ownValue } from '../../part/own-value.ts'
import type { DisconnectPolicy } from '../../pipeline/pipeline.ts'
import type { Agent, Run } from '../../runtime/runtime.ts'
import { hashText } from '../http/key.ts'
import { idempotencyKey } from '../routes/idempotency.ts'
import { keepRunning } from '../http/wait-until.ts'
import type { Permit } from '../../part/limits.ts'
import { protocol, toResult, type Asked } from './asked.ts'
import { faultResult, readAnswer, readCallResult } from './call-result.ts'
import { asJson, callStream, type CallStreamOptions } from './call-stream.ts'
import { declaresTasks, missingTasks } from './inbound.ts'
import { invalidParams, isObject, resultMessage, type MessageId } from './json-rpc.ts'
import { legacyQuestions } from './legacy-questions.ts'
import { onMisfit, type Notes } from './notes.ts'
import { inputRequired, readRetry, type Retry } from './retry.ts'
import { hashCall } from './sealed-token.ts'
import type { KeptRun } from '../../fold/kept-run.ts'
import { readKept } from '../../fold/read-view.ts'
import { createTask } from './tasks.ts'
import { agentsIn, readArguments, type CallInput } from './tools.ts'

/** Rejects with an `RpcError` or a `MillraceError` before anything is started. */
export async function callTool(asked: Asked, request: Request): Promise<Response> {
  const { context, client, id, params } = asked
  const agent = agentOf(asked)
  if (agent.pipeline.metadata.mcp?.tasks === 'required' && !declaresTasks(client)) throw missingTasks()
  const retry = client.era === 'modern' ? await readRetry(asked) : undefined
  if (retry?.again !== undefined) return Response.json(resultMessage(id, retry.again))
  if (retry !== undefined) {
    const place = await openPlace(asked)
    return follow(asked, agent, { run: retry.run.id, retry, place, hasTasks: false })
  }
  const read = readArguments(agent, context.runtime.agents, ownValue(params, 'arguments'))
  if ('faults' in read) return Response.json(resultMessage(id, faultResult(asked, read.faults)))
  const waitUntil = context.waitUntil(request)
  // Elsewhere a run would end with the response.
  const hasTasks = mayBeTask(asked, agent) && (waitUntil !== undefined || !isBoundToRequest())
  if (hasTasks) await checkTasks(asked)
  const refusal = await context.admission.start()
  if (refusal !== undefined) throw refusal
  const place = await openPlace(asked)
  try {
    const run = await startCall(asked, agent, read)
    keepRunning(waitUntil, run)
    return follow(asked, agent, { run: run.id, place, hasTasks })
  } catch (error) {
    place?.leave()
    // It can be put right by the model, as other arguments can.
    if (error instanceof MillraceError && error.code === 'bad-input')
      return Response.json(resultMessage(id, faultResult(asked, error.message)))
    throw error
  }
}

function mayBeTask({ client }: Asked, { pipeline }: Agent): boolean {
  return declaresTasks(client) && pipeline.metadata.mcp?.tasks !== 'never'
}

/** Active ones of a caller. */
const mostTasks = 1000

/** Throws `too-many-tasks`. */
async function checkTasks({ context: { runtime, principal } }: Asked): Promise<void> {
  const rows = await runtime.store.runs.list({
    owner: principal.id,
    tenant: principal.tenant ?? '',
    status: ['running', 'suspended'],
    limit: mostTasks,
  })
  if (rows.length < mostTasks || rows.some((row) => row.protocol !== protocol)) return
  const cure = 'Wait for some to end, or cancel them with tasks/cancel.'
  throw new MillraceError('too-many-tasks', `You have ${mostTasks} active tasks. ${cure}`, {
    status: 429,
    retryAfter: 5,
  })
}

interface Followed {
  run: string
  place: Permit | undefined
  retry?: Retry
  hasTasks: boolean
}

function follow(asked: Asked, agent: Agent, { run, place, retry, hasTasks }: Followed): Response {
  const { context, mcp, client, id } = asked
  const rules = agent.pipeline.metadata.mcp
  const policy = policyOf(asked, agent)
  const stream = {
    ...streamOf(asked, run),
    ...(retry && { from: retry.from }),
    async onAnswered() {
      const answer = await readAnswer(asked, run, agent.pipeline)
      return answer && resultMessage(id, toResult(client, answer))
    },
  }
  if (hasTasks) {
    const message = async () => resultMessage(id, await createTask(asked, run))
    return callStream({
      ...stream,
      late: { ms: rules?.tasks === 'required' ? 0 : mcp.taskAfterMs, message },
      onSuspend: message,
      onLeft(finished) {
        place?.leave()
        // No reader was announced before: the run may go on without any once it is a task.
        if (!finished) context.runtime.attach(run, policy)()
      },
    })
  }
  const release = context.runtime.attach(run, policy)
  return callStream({
    ...stream,
    onSuspend: client.era === 'modern' ? askModern(asked, run, retry?.notes) : askLegacy(asked, run),
    onLeft(finished) {
      release({ finished })
      place?.leave()
    },
  })
}

type OnSuspend = NonNullable<CallStreamOptions['onSuspend']>

/** Ends the response with what the run asks, if this client can answer. Else it waits with others. */
function askModern(asked: Asked, run: string, notes?: Notes): OnSuspend {
  return async () => {
    const kept = await keptIfSuspended(asked, run)
    const result = kept && (await inputRequired(asked, kept, notes))
    return result && resultMessage(asked.id, result)
  }
}

/** Asks on the stream. Content that does not fit may have reached another instance, which leaves a note. */
function askLegacy(asked: Asked, run: string): OnSuspend {
  const { log } = asked.context.runtime.store
  const told = new Set<string>()
  let isFollowing = false
  return async (_entry, { send, signal }) => {
    const ask = async () => {
      const kept = asked.framing === asJson ? undefined : await keptIfSuspended(asked, run)
      for (const message of kept === undefined ? [] : await legacyQuestions(asked, kept, told)) send(message)
    }
    await ask()
    if (!isFollowing && told.size > 0) void onMisfit(log, run, signal, ask).catch(asked.context.onError)
    isFollowing ||= told.size > 0
    return undefined
  }
}

async function keptIfSuspended({ context }: Asked, run: string): Promise<KeptRun | undefined> {
  const kept = await readKept(context.runtime.store, run)
  return kept?.status === 'suspended' ? kept : undefined
}

/** ms. Proxies and clients wait for longer than twice this. */
const longestSilence = 8000

/** The options of a response that follows a run to its end. */
export function streamOf(asked: Asked, run: string) {
  const { context, mcp, client, id, framing } = asked
  return {
    log: context.runtime.store.log,
    run,
    id,
    framing,
    progressToken: framing === asJson ? undefined : progressTokenOf(asked),
    keepAliveMs: Math.min(context.keepAliveMs, longestSilence),
    clock: mcp.clock,
    onEnd: async () => resultMessage(id, toResult(client, await readCallResult(asked, run))),
    onExpired: context.onExpired,
    onError: context.onError,
  }
}

/** Of an answer that streams. */
async function openPlace({ context, framing }: Asked): Promise<Permit | undefined> {
  if (framing === asJson) return undefined
  const place = await context.admission.stream()
  if (place instanceof Error) throw place
  return place
}

/** One text for tools that do not exist and those that are not open to the caller. */
function agentOf({ context, params, scope }: Asked): Agent {
  const name = ownValue(params, 'name')
  if (typeof name !== 'string') throw invalidParams('params.name must be the name of a tool.')
  const agent = agentsIn(context.runtime.agents, scope).find((each) => each.id === name)
  if (agent === undefined)
    throw invalidParams(`There is no tool ${JSON.stringify(name.slice(0, 200))}. tools/list has those that there are.`)
  return agent
}

/** The end of the connection stops a modern call, as the specification demands. A legacy client may have lost it and come back. */
function policyOf({ client, headers }: Asked, { pipeline }: Agent): DisconnectPolicy {
  // `millrace mcp` stops a run by its id: its own end is that of a client, and of no call.
  if (headers.get('x-millrace-client') === 'stdio') return pipeline.onDisconnect ?? 'detach'
  return pipeline.onDisconnect ?? (client.era === 'modern' ? 'cancel' : { cancelAfter: 15_000 })
}

function progressTokenOf({ params }: Asked): MessageId | undefined {
  const meta = ownValue(params, '_meta')
  const token = isObject(meta) ? ownValue(meta, 'progressToken') : undefined
  return typeof token === 'string' || Number.isSafeInteger(token) ? (token as MessageId) : undefined
}

async function startCall(asked: Asked, agent: Agent, read: CallInput): Promise<Run> {
  const key = await turnKeyOf(asked, agent.id)
  if (key === undefined) return startWithId(asked, agent, read)
  // After a stop the same call is a new run.
  for (let time = 0; ; time++) {
    const run = await startRun(asked, agent, read, { turnKey: `${key}:${time}` })
    if (!run.joined || (await asked.context.runtime.store.runs.get(run.id))?.status !== 'aborted') return run
  }
}

/** A legacy client stops a call by the id of its request: so any instance must know the run of that. */
export async function runOfLegacyCall(session: string, id: MessageId): Promise<string> {
  return `run_${(await hashText(JSON.stringify([session, id]))).slice(0, 32)}`
}

async function startWithId(asked: Asked, agent: Agent, read: CallInput): Promise<Run> {
  const { session, id } = asked
  if (session === undefined) return startRun(asked, agent, read, {})
  try {
    return await startRun(asked, agent, read, { runId: await runOfLegacyCall(session, id) })
  } catch (error) {
    // A client that counts its requests anew: it cannot stop this one by its id.
    if (error instanceof MillraceError && error.code === 'run-exists') return startRun(asked, agent, read, {})
    throw error
  }
}

function startRun(
  { context: { runtime }, mcp, client, params, headers }: Asked,
  agent: Agent,
  { input, thread }: CallInput,
  how: { turnKey?: string; runId?: string },
): Promise<Run> {
  const meta = ownValue(params, '_meta')
  const traced = isObject(meta) ? ownValue(meta, 'traceparent') : undefined
  return runtime.start(agent.id, input, {
    protocol,
    history: 'server',
    onBusy: 'queue',
    noClientTools: mcp.options.clientTools !== 'wait',
    labels: omitUndefined({ client: client.name, clientVersion: client.release }) as Record<string, string>,
    traceparent: typeof traced === 'string' ? traced : headers.get('traceparent'),
    ...omitUndefined({ threadId: thread }),
    ...how,
  })
}

/** A call that is sent again has the key of the first time. Claude Code sends the id of its model's call. */
async function turnKeyOf({ params, headers }: Asked, tool: string): Promise<string | undefined> {
  const meta = ownValue(params, '_meta')
  const toolUse = isObject(meta) ? ownValue(meta, 'claudecode/toolUseId') : undefined
  const key =
    idempotencyKey({ headers } as Request) ?? (typeof toolUse === 'string' && toolUse !== '' ? toolUse : undefined)
  if (key === undefined) return undefined
  return `mcp:${await hashText(key)}:${await hashCall(tool, ownValue(params, 'arguments') ?? {})}`
}
