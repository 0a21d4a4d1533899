/** `tools/call`: starts a run of the agent, or joins the run that this very call has started before, and answers with its result. */
import { omitUndefined } from '../../part/omit-undefined.ts'
import { MillraceError } from '../../part/error.ts'
import { ownValue } from '../../part/own-value.ts'
import type { DisconnectPolicy } from '../../pipeline/pipeline.ts'
import type { Agent, Run } from '../../runtime/runtime.ts'
import { hashText } from '../http/key.ts'
import { idempotencyKey } from '../routes/idempotency.ts'
import { keepRunning } from '../http/wait-until.ts'
import type { Permit } from '../../part/limits.ts'
import { toResult, type Asked } from './asked.ts'
import { faultResult, readCallResult } from './call-result.ts'
import { asJson, callStream } from './call-stream.ts'
import { declaresTasks, missingTasks } from './inbound.ts'
import { invalidParams, isObject, resultMessage, type MessageId } from './json-rpc.ts'
import { hashCall } from './sealed-token.ts'
import { createTask } from './tasks.ts'
import { agentsIn, readArguments, type CallInput } from './tools.ts'

export const protocol = 'mcp'

/** Rejects with an `RpcError` or a `MillraceError` before anything is started. */
export async function callTool(asked: Asked, request: Request): Promise<Response> {
  const { context, mcp, client, id, params, framing } = asked
  const agent = agentOf(asked)
  const { mcp: rules = {} } = agent.pipeline.metadata
  if (rules.tasks === 'required' && !declaresTasks(client)) throw missingTasks()
  const given = ownValue(params, 'arguments')
  const read = readArguments(agent.pipeline, given)
  if ('faults' in read) return Response.json(resultMessage(id, faultResult(asked, read.faults)))
  const refusal = await context.admission.start()
  if (refusal !== undefined) throw refusal
  const place = framing === asJson ? undefined : await openPlace(asked)
  let run: Run
  try {
    run = await startCall(asked, agent, read)
  } catch (error) {
    place?.leave()
    // It can be put right by the model, as other arguments can.
    if (error instanceof MillraceError && error.code === 'bad-input')
      return Response.json(resultMessage(id, faultResult(asked, error.message)))
    throw error
  }
  keepRunning(context.waitUntil(request), run)
  const policy = policyOf(asked, agent)
  if (declaresTasks(client) && rules.tasks !== 'never') {
    const message = async () => resultMessage(id, await createTask(asked, run.id))
    return callStream({
      ...streamOf(asked, run.id),
      late: { ms: rules.tasks === 'required' ? 0 : mcp.taskAfterMs, message },
      onSuspend: async () => ({ last: await message() }),
      onLeft(finished) {
        place?.leave()
        // No reader was announced before: the run may go on without any once it is a task.
        if (!finished) context.runtime.attach(run.id, policy)()
      },
    })
  }
  const release = context.runtime.attach(run.id, policy)
  return callStream({
    ...streamOf(asked, run.id),
    onLeft(finished) {
      release({ finished })
      place?.leave()
    },
  })
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

async function openPlace({ context }: Asked): Promise<Permit> {
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
    if (!run.joined || (await context(asked).store.runs.get(run.id))?.status !== 'aborted') return run
  }
}

function context(asked: Asked) {
  return asked.context.runtime
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
  { context: { runtime }, client, params, headers }: Asked,
  agent: Agent,
  { input, message, thread }: CallInput,
  how: { turnKey?: string; runId?: string },
): Promise<Run> {
  const meta = ownValue(params, '_meta')
  const traced = isObject(meta) ? ownValue(meta, 'traceparent') : undefined
  const messages = message === undefined ? undefined : [{ role: 'user', content: message }]
  return runtime.start(agent.id, omitUndefined({ ...input, messages }), {
    protocol,
    history: 'server',
    onBusy: 'queue',
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
