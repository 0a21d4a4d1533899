/** The Socket.IO server: access, and the effect of each message. docs/socket-io.md is its contract. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { Server, type Socket } from 'socket.io'
import { MillraceError } from '../../part/error.ts'
import { createKeyCheck } from '../http/key.ts'
import { closingError, unknownRun, unknownAgent, listedAgents } from '../../runtime/runtime-errors.ts'
import {
  messageTypes,
  readMessage,
  type ClientMessage,
  type MessageReply,
  bad,
  readPosition,
  requiredText,
  type Data,
} from './message.ts'
import { sliceInput } from './sliced-input.ts'
import { createSession, toldError, type Session, openPlace, mostRuns } from './session.ts'
import type { SessionContext, FollowedRun } from './followed-run.ts'
import type { SocketOptions } from './socket-context.ts'
import type { AgentSource, Agent } from '../../runtime/runtime.ts'
import { checkCursor, readKept } from '../../fold/read-view.ts'
import { ownValue } from '../../part/own-value.ts'
import { chatPolicy } from '../routes/chat-request.ts'
import { optionalText } from '../http/body.ts'
import { toCallId } from '../../wire/ag-ui/ag-ui-ids.ts'
import { toToolAnswer } from '../../wire/ag-ui/ag-ui-answers.ts'
import { notAsked } from './client-calls.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { continueOrStart } from '../../runtime/continue.ts'
import { listNames } from '../../pipeline/nearest.ts'
import { toAgUiTurn, readRunInput, type AgUiRequest } from '../ag-ui/ag-ui-turn.ts'

/** Counts of open resources, so that tests can detect leaks. */
export interface SocketCounts {
  sockets: number
  /** Polling sockets among them. */
  polling: number
  /** Followed runs, and responses that stream. */
  runs: number
  starting: number
  /** Tool results that wait for their request. */
  waiting: number
}

export interface SocketServer {
  handle(request: IncomingMessage, response: ServerResponse): void
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  announceAgents(): void
  counts(): SocketCounts
  close(): Promise<void>
}

/** Messages that begin work. Current runs may still be answered and stopped. */
const entering: ReadonlySet<string> = new Set(['run_agent', 'watch_run', 'request'])

/** Maximum number of a client's unacknowledged messages. */
const mostUnanswered = 1000

/** Messages that end work: they are always accepted. */
const leaving: ReadonlySet<string> = new Set(['abort_run', 'cancel_request'])

/** ms in which clients must have received the end of their runs when the server closes. */
const farewellMs = 1000

export function createSocketServer(options: SocketOptions): SocketServer {
  const { runtime, onError, apiKey, allowedOrigins = [], maxBodyBytes = 4 * 1024 * 1024 } = options
  const allowsKey = apiKey === undefined ? undefined : createKeyCheck(apiKey)
  const sessions = new Map<Socket, Session>()
  const closing = new AbortController()
  let waiting = 0
  const context: SessionContext = {
    runtime,
    onError,
    keepAliveMs: 0,
    admission: options.admission,
    handler: options.handler,
    signal: closing.signal,
    onWaiting: (change) => void (waiting += change),
  }

  const io = new Server({
    maxHttpBufferSize: maxBodyBytes,
    perMessageDeflate: false,
    httpCompression: false,
    // A client without the key must not keep a connection.
    connectTimeout: 10_000,
    ...(allowedOrigins.length > 0 && { cors: { origin: [...allowedOrigins] } }),
  })
  // Socket.IO takes requests from this server's events. Our own server listens and forwards requests for Socket.IO.
  const inner = createServer()
  io.attach(inner)
  const input = sliceInput(io)

  io.use(({ handshake: { auth } }, next) => {
    const { token } = auth as { token?: unknown }
    if (allowsKey?.(typeof token === 'string' ? `Bearer ${token}` : null) !== false) return next()
    next(Object.assign(new Error('Send the key as auth.token.'), { data: { code: 'unauthorized' } }))
  })

  io.on('connection', (socket) => {
    const session = createSession(context, socket)
    sessions.set(socket, session)
    socket.emit('agents', agentsMessage(runtime.agents))
    let unanswered = 0
    socket.on('message', (...args: unknown[]) => {
      unanswered++
      void receive(session, args, unanswered > mostUnanswered).finally(() => unanswered--)
    })
    socket.onAny((event: string, ...args: unknown[]) => {
      const acknowledge = args.at(-1)
      if (event !== 'message' && typeof acknowledge === 'function')
        (acknowledge as (answer: object) => void)({ ok: false, error: toldError(notMessage(event), onError) })
    })
    socket.on('disconnect', () => {
      sessions.delete(socket)
      session.leave()
    })
  })

  /** Never rejects. Every message is acknowledged; without an acknowledgement callback, a failed start is sent like a failed run. */
  async function receive(session: Session, args: unknown[], isTooMany: boolean): Promise<void> {
    const last = args.at(-1)
    const acknowledge = typeof last === 'function' ? (last as (answer: object) => void) : undefined
    let message: ClientMessage | undefined
    try {
      message = readMessage(args[0])
      if (isTooMany && !leaving.has(message.type)) throw tooMany()
      const { said, begin } = await dispatch(session, message)
      acknowledge?.({ ok: true, ...said })
      begin?.()
    } catch (thrown) {
      const error = toldError(thrown, onError)
      if (acknowledge !== undefined) return acknowledge({ ok: false, error })
      if (message?.type !== 'run_agent') return
      const { runId, threadId } = message.data
      const { message: why, code, ...hint } = error
      session.emit({ type: 'RUN_ERROR', message: why, code }, { runId, threadId, ...hint })
    }
  }

  function dispatch(session: Session, { type, data }: ClientMessage): Promise<MessageReply> {
    if (closing.signal.aborted) throw closingError()
    const drained = entering.has(type) ? options.draining?.() : undefined
    if (drained !== undefined) throw drained
    switch (type) {
      case 'run_agent':
        return session.track(runAgent(context, session, data))
      case 'tool_result':
        return answerCall(context, session, data)
      case 'abort_run':
        return abortRun(context, session, data)
      case 'watch_run':
        return session.track(watchRun(context, session, data))
      case 'request':
        return session.requests.pass(data)
      case 'cancel_request':
        return session.requests.cancel(data)
    }
  }

  const count = (of: (session: Session) => number) => [...sessions.values()].reduce((sum, each) => sum + of(each), 0)
  const runs = () => count(({ active, starting, requests }) => active - starting.size + requests.size)

  return {
    handle(request, response) {
      const pass = () => void inner.emit('request', request, response)
      if (request.method === 'POST') input.handle(request, response, pass)
      else pass()
    },
    upgrade: (request, socket, head) => void inner.emit('upgrade', request, socket, head),
    announceAgents: () => void io.emit('agents', agentsMessage(runtime.agents)),
    counts: () => ({
      sockets: sessions.size,
      polling: [...sessions.keys()].filter(({ conn }) => conn.transport.name === 'polling').length,
      runs: runs(),
      starting: count(({ starting }) => starting.size),
      waiting,
    }),
    async close() {
      const enough = performance.now() + farewellMs
      while (sessions.size > 0 && performance.now() < enough) {
        if (runs() === 0 && [...sessions.keys()].every(({ conn }) => conn.transport.writable)) break
        await new Promise((done) => setTimeout(done, 10))
      }
      closing.abort()
      // Not `disconnectSockets`: clients would take that as intended, and not reconnect.
      io.engine.close()
    },
  }
}

/** A client that waits for an acknowledgement of an unknown event would wait forever. */
function notMessage(event: string): MillraceError {
  const type = messageTypes.find((each) => each === event)
  const meant = type === undefined ? `{type, data}` : `{type: '${type}', data}`
  const sent = `The event "${event.slice(0, 60)}" is not known`
  return new MillraceError('bad-input', `${sent}: emit "message" with ${meant} and the same acknowledgement.`)
}

function tooMany(): MillraceError {
  const cure = 'Wait for answers, then send it again.'
  return new MillraceError('too-many', `This socket has ${mostUnanswered} messages that are not answered yet. ${cure}`)
}

/** `agents`: the agents that a client may run, and the default one. */
function agentsMessage(source: AgentSource): object {
  const agents = listedAgents(source).map(({ id, pipeline }) => {
    const { name = id, description } = pipeline.metadata
    return { id, name, ...(description !== undefined && { description }) }
  })
  return { agents, ...(agents.length === 1 && { defaultAgent: agents[0]!.id }) }
}

/*
 * `abort_run` and `watch_run`. A run is named by our id, whichever client started it: a connected client may read and stop all runs, as over HTTP.
 * Ids of clients need not be unique, so they name only runs of the same socket.
 */

/** Protocols whose runs have a reading client. */
const readProtocols: ReadonlySet<string> = new Set(['ag-ui', 'ui', 'text'])

async function abortRun({ runtime }: SessionContext, session: Session, data: Data): Promise<MessageReply> {
  const name = requiredText(data, 'runId')
  const runId = await idOf(session, name)
  await runtime.stop(runId, 'Stopped by the user.')
  return { said: { runId: name } }
}

async function watchRun({ runtime, admission }: SessionContext, session: Session, data: Data): Promise<MessageReply> {
  const name = requiredText(data, 'runId')
  const after = readPosition(data)
  const runId = await idOf(session, name)
  const row = await runtime.store.runs.get(runId)
  if (row === undefined) throw unknownRun(name)
  if (after.seq > row.lastSeq) throw bad('after', `at most ${row.lastSeq}, the last entry of run ${name}`)
  await checkCursor(runtime.store.log, row.id, after.seq)
  const { threadId, agent, protocol } = row
  // The latest one, as the later events name it.
  const label = (await readKept(runtime.store, runId))?.labels?.['runId'] ?? runId
  const { begin } = await session.follow({
    runId,
    label,
    threadId,
    after,
    isNew: false,
    options: { old: ownValue(data, 'protocolVersion') === undefined },
    policy: readProtocols.has(protocol) ? chatPolicy(runtime, agent) : 'detach',
    place: await openPlace(admission, session.address),
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
async function answerCall(context: SessionContext, session: Session, data: Data): Promise<MessageReply> {
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
async function runAgent(context: SessionContext, session: Session, data: Data): Promise<MessageReply> {
  const { runtime } = context
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
    const { run, how, from, warnings, messages, place } = await begun
    const { id: runId, threadId } = run
    const said = { runId: label, threadId, millraceRunId: runId }
    // A repeated message: it has its stream already.
    if (how === 'joined' && session.followed.get(runId)?.isOver === false) {
      place?.leave()
      return { said }
    }
    const policy = chatPolicy(runtime, agent.id)
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

async function begin({ runtime, admission }: SessionContext, session: Session, agent: Agent, asked: AgUiRequest) {
  const limited = await admission?.start(session.address)
  if (limited !== undefined) throw limited
  const place = await openPlace(admission, session.address)
  try {
    const { turn, ...shown } = await toAgUiTurn(runtime, agent, asked, { history: 'server' })
    return { ...(await continueOrStart(runtime, turn)), ...shown, place }
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
