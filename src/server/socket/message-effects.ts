/** The effect of each message of a Socket.IO client, and the action that it is for `decide`. */
import type { Action } from '../../access/decide.ts'
import { checkCursor, readKept } from '../../fold/read-view.ts'
import { MillraceError } from '../../part/error.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { ownValue } from '../../part/own-value.ts'
import { plainThread } from '../../part/principal.ts'
import { listNames } from '../../pipeline/nearest.ts'
import { continueOrStart } from '../../runtime/continue.ts'
import { pipelineOfRun } from '../../runtime/own-text.ts'
import { listedAgents, unknownAgent, unknownRun } from '../../runtime/runtime-errors.ts'
import type { Agent, AgentSource } from '../../runtime/runtime.ts'
import { toToolAnswer } from '../../wire/ag-ui/ag-ui-answers.ts'
import { toCallId } from '../../wire/ag-ui/ag-ui-ids.ts'
import { agentOfRequest, readRunInput, toAgUiTurn, type AgUiRequest } from '../ag-ui/ag-ui-turn.ts'
import { optionalText } from '../http/body.ts'
import { chatPolicy } from '../routes/chat-request.ts'
import { messageFields, readMessage } from '../routes/read-message.ts'
import { notAsked } from './client-calls.ts'
import type { FollowedRun, SessionContext } from './followed-run.ts'
import { bad, readPosition, requiredText, type ClientMessage, type Data, type MessageReply } from './message.ts'
import { mostRuns, openPlace, type Session } from './session.ts'

/** `open`: the routes decide. */
export const messageActions: Readonly<Record<ClientMessage['type'], Action>> = {
  run_agent: 'runs.start',
  tool_result: 'runs.answer',
  message: 'runs.answer',
  abort_run: 'runs.stop',
  watch_run: 'runs.read',
  request: 'open',
  cancel_request: 'open',
  renew: 'open',
}

/*
 * `abort_run` and `watch_run`. A run is named by our id, whichever client started it: a connected client may read and stop all runs, as over HTTP.
 * Ids of clients need not be unique, so they name only runs of the same socket.
 */

/** Protocols whose runs have a reading client. */
const readProtocols: ReadonlySet<string> = new Set(['ag-ui', 'ui', 'text'])

export async function abortRun({ runtime }: SessionContext, session: Session, data: Data): Promise<MessageReply> {
  const name = requiredText(data, 'runId')
  const runId = await idOf(session, name)
  await runtime.stop(runId, 'Stopped by the user.')
  return { said: { runId: name } }
}

/** `message`: into the running turn of a run, by any client that may answer its requests. Its readers see it in their streams. */
export async function sendMessage({ runtime }: SessionContext, session: Session, data: Data): Promise<MessageReply> {
  const name = requiredText(data, 'runId')
  const { runId: _, ...message } = data
  const given = readMessage(message, messageFields)
  const told = await runtime.tell(await idOf(session, name), { ...given, protocol: 'socket.io' })
  return { said: { runId: name, ...told } }
}

export async function watchRun(
  { runtime, admission, principal }: SessionContext,
  session: Session,
  data: Data,
): Promise<MessageReply> {
  const name = requiredText(data, 'runId')
  const after = readPosition(data)
  const runId = await idOf(session, name)
  const row = await runtime.store.runs.get(runId)
  if (row === undefined) throw unknownRun(name)
  if (after.seq > row.lastSeq) throw bad('after', `at most ${row.lastSeq}, the last entry of run ${name}`)
  await checkCursor(runtime.store.log, row.id, after.seq)
  const { protocol, owner } = row
  const threadId = owner === undefined ? row.threadId : plainThread(row.threadId)
  // The latest one, as the later events name it.
  const label = (await readKept(runtime.store, runId))?.labels?.['runId'] ?? runId
  const { begin } = await session.follow({
    runId,
    label,
    threadId,
    after,
    isNew: false,
    options: { old: ownValue(data, 'protocolVersion') === undefined },
    policy: readProtocols.has(protocol) ? chatPolicy(runtime, await pipelineOfRun(runtime, row)) : 'detach',
    place: await openPlace(admission, { principal, address: session.address }),
  })
  return { said: { runId: label, threadId, millraceRunId: runId }, begin }
}

/** Our id for a client's name of a run. If the client has reused an id, the latest run counts. */
async function idOf(session: Session, name: string): Promise<string> {
  const starting = await session.starting.get(name)?.catch(() => undefined)
  const own = [...session.followed.values()].findLast(({ label }) => label === name)
  return starting ?? own?.runId ?? name
}

/** `tool_result`: the result of a client's tool. It replies to a call of a run that this socket follows, never to others. */
export async function answerCall(context: SessionContext, session: Session, data: Data): Promise<MessageReply> {
  const { runtime } = context
  const name = requiredText(data, 'toolCallId')
  const toolCallId = toCallId(name)
  const given = toToolAnswer(data, 'data')
  const run = await runOf(session, toolCallId, optionalText(data, 'runId'))
  const requestId = await run.calls.requestOf(toolCallId)
  // Redacted like the stored reply, so that the same reply compares as equal.
  const answer = runtime.redact(given)
  const told = { protocol: 'socket.io' }
  const { duplicate, isSame, answer: winner } = await runtime.answer(run.runId, requestId, answer, told)
  if ('closed' in winner) throw conflict(toolCallId, `was closed: ${winner.closed}`)
  if (!isSame) throw conflict(toolCallId, 'already has a different result')
  return { said: { toolCallId: name, duplicate } }
}

/** The run with this call. Providers repeat ids, so calls of several runs may have the same one. */
async function runOf(session: Session, toolCallId: string, label: string | undefined): Promise<FollowedRun> {
  await session.caughtUp()
  const runs = [...session.followed.values()]
  const named = label === undefined ? runs : runs.filter((run) => run.label === label || run.runId === label)
  const having = named.filter(({ calls }) => calls.has(toolCallId))
  const open = having.filter(({ calls }) => calls.isOpen(toolCallId))
  const living = having.filter(({ isOver }) => !isOver)
  const found = [open, living, having].find(({ length }) => length > 0) ?? []
  if (found.length > 1) {
    const cure = 'Say with runId which of them this is.'
    throw new MillraceError('ambiguous-call', `${found.length} runs have a call "${toolCallId}". ${cure}`)
  }
  const [run] = found
  if (run === undefined) throw notAsked(toolCallId)
  return run
}

function conflict(toolCallId: string, why: string): MillraceError {
  return new MillraceError('answer-conflict', `The call "${toolCallId}" ${why}.`, { status: 409 })
}

/** `run_agent`: starts a run, or continues the one that waits for the request's replies, and follows it. */
export async function runAgent(context: SessionContext, session: Session, data: Data): Promise<MessageReply> {
  const { runtime, principal } = context
  const agent = agentOf(runtime.agents, data)
  const asked = readRunInput(data)
  const { runId: label, old } = asked
  if (session.active >= mostRuns) {
    const cure = 'Wait until one ends, or use another connection.'
    throw new MillraceError('too-many-runs', `This socket follows ${mostRuns} runs. ${cure}`)
  }
  const begun = begin(context, session, agent, asked)
  const id = begun.then(({ run }) => run.id)
  id.catch(() => undefined)
  session.starting.set(label, id)
  try {
    const { run, how, from, warnings, messages, place, pipeline } = await begun
    const { id: runId } = run
    const threadId = principal.id === '' ? run.threadId : plainThread(run.threadId)
    const said = { runId: label, threadId, millraceRunId: runId }
    // A repeated message, or one for a run that this socket follows: it has its stream already.
    if ((how === 'joined' || how === 'steered') && session.followed.get(runId)?.isOver === false) {
      place?.leave()
      return { said }
    }
    const policy = chatPolicy(runtime, pipeline)
    const after = { seq: how === 'joined' ? 0 : Math.max(0, from - 1) }
    const answered = new Set(asked.results.map(({ toolCallId }) => toolCallId))
    const options = { old, warnings, ...(how === 'started' && omitUndefined({ messages })) }
    const { begin: send } = await session.follow({
      runId,
      label,
      threadId,
      after,
      isNew: how !== 'joined',
      answered,
      options,
      policy,
      place,
    })
    return { said, begin: send }
  } finally {
    if (session.starting.get(label) === id) session.starting.delete(label)
  }
}

async function begin(context: SessionContext, session: Session, file: Agent, asked: AgUiRequest) {
  const { runtime, admission, principal } = context
  const caller = { principal, address: session.address }
  const limited = await admission?.start(caller)
  if (limited !== undefined) throw limited
  const place = await openPlace(admission, caller)
  try {
    const { agent, own } = await agentOfRequest(context, session.requests, file, asked)
    const { turn, ...shown } = await toAgUiTurn(runtime, agent, asked, { history: 'server', own })
    return { ...(await continueOrStart(runtime, turn)), ...shown, place, pipeline: agent.pipeline }
  } catch (error) {
    place?.leave()
    throw error
  }
}

/** The agent that `forwardedProps.agent` names, or the only one. */
function agentOf(agents: AgentSource, data: Data): Agent {
  const props = ownValue(data, 'forwardedProps')
  const named = typeof props === 'object' && props !== null ? ownValue(props as Data, 'agent') : undefined
  if (named === undefined || named === null) {
    const listed = listedAgents(agents)
    if (listed.length === 1) return listed[0]!
    const known = listNames(listed.map(({ id }) => id))
    throw new MillraceError('bad-input', `forwardedProps.agent is missing. Known agents: ${known}.`)
  }
  if (typeof named !== 'string') throw new MillraceError('bad-input', 'forwardedProps.agent must be a string.')
  const agent = agents.get(named)
  if (agent === undefined) throw unknownAgent(named, agents)
  return agent
}
