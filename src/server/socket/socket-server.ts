/** The Socket.IO server: its clients, who they are, and their messages. docs/socket-io.md is its contract. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { Server, type Socket } from 'socket.io'
import { decide } from '../../access/decide.ts'
import { notAllowed } from '../../access/scope-store.ts'
import { MillraceError } from '../../part/error.ts'
import type { Principal } from '../../part/principal.ts'
import { closingError, listedAgents } from '../../runtime/runtime-errors.ts'
import type { AgentSource } from '../../runtime/runtime.ts'
import { scopeRuntime } from '../../access/scope-runtime.ts'
import { createSocketAccess, type SocketAccess } from './socket-access.ts'
import { ownValue } from '../../part/own-value.ts'
import { editingOf } from '../access/caller.ts'
import { createEditing } from '../http/editing.ts'
import { recordAudit } from '../routes/audit.ts'
import type { SessionContext } from './followed-run.ts'
import { abortRun, answerCall, messageActions, runAgent, sendMessage, watchRun } from './message-effects.ts'
import { bad, messageTypes, readMessage, type ClientMessage, type Data, type MessageReply } from './message.ts'
import { createSession, headersOf, toldError, type Session } from './session.ts'
import { sliceInput } from './sliced-input.ts'
import type { SocketOptions } from './socket-context.ts'

/** A connected client. */
interface Client {
  context: SessionContext
  session: Session
  socket: Socket
  access: SocketAccess
}

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
  const { runtime, onError, access, allowedOrigins = [], maxBodyBytes = 4 * 1024 * 1024 } = options
  const sessions = new Map<Socket, Client>()
  const closing = new AbortController()
  const editing = createEditing({ ...options, ownPageOnly: options.localOnly })
  let waiting = 0
  const shared = {
    onError,
    keepAliveMs: 0,
    admission: options.admission,
    agentEditor: options.agentEditor,
    handler: options.handler,
    signal: closing.signal,
    onWaiting: (change: 1 | -1) => void (waiting += change),
  }

  function contextFor(principal: Principal, { onExpired }: SocketAccess, address: string): SessionContext {
    const scoped = scopeRuntime(runtime, principal, {
      onExpired: (_, end) => onExpired(end),
      onDone(action, { id: resource, tenant }) {
        const row = { principal, action, resource, outcome: 'done', address, tenant } as const
        recordAudit({ store: runtime.store, onError }, row)
      },
    })
    return { ...shared, principal, runtime: scoped, editing: editingOf(editing, principal) }
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

  io.use((socket, next) => {
    identify(socket).then(
      (principal) => {
        ;(socket.data as { principal: Principal }).principal = principal
        next()
      },
      (error: unknown) => {
        const { code, message } = toldError(error, onError)
        const text = code === 'unauthorized' ? 'Send the key as auth.token.' : message
        next(Object.assign(new Error(text), { data: { code } }))
      },
    )
  })

  async function identify({ handshake }: Socket, token: unknown = handshake.auth['token']): Promise<Principal> {
    const headers = headersOf(handshake, token)
    const request = () => new Request(`http://${headers.get('host') ?? 'localhost'}${handshake.url}`, { headers })
    // A socket starts runs.
    return access.identify({ method: 'POST', headers, request, setCookie: () => undefined })
  }

  io.on('connection', (socket) => {
    const { principal } = socket.data as { principal: Principal }
    // Its runs have got their last event by then.
    const socketAccess = createSocketAccess(access, principal, () => void setImmediate(() => socket.disconnect(true)))
    const context = contextFor(principal, socketAccess, socket.handshake.address)
    const session = createSession(context, socket)
    const client = { context, session, socket, access: socketAccess }
    sessions.set(socket, client)
    socket.emit('agents', agentsMessage(context.runtime.agents))
    let unanswered = 0
    socket.on('message', (...args: unknown[]) => {
      unanswered++
      void receive(client, args, unanswered > mostUnanswered).finally(() => unanswered--)
    })
    socket.onAny((event: string, ...args: unknown[]) => {
      const acknowledge = args.at(-1)
      if (event !== 'message' && typeof acknowledge === 'function')
        (acknowledge as (answer: object) => void)({ ok: false, error: toldError(notMessage(event), onError) })
    })
    socket.on('disconnect', () => {
      socketAccess.close()
      sessions.delete(socket)
      session.leave()
    })
  })

  /** Never rejects. Every message is acknowledged; without an acknowledgement callback, a failed start is sent like a failed run. */
  async function receive(client: Client, args: unknown[], isTooMany: boolean): Promise<void> {
    const { session } = client
    const last = args.at(-1)
    const acknowledge = typeof last === 'function' ? (last as (answer: object) => void) : undefined
    let message: ClientMessage | undefined
    try {
      message = readMessage(args[0])
      if (isTooMany && !leaving.has(message.type)) throw tooMany()
      const { said, begin } = await dispatch(client, message)
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

  function dispatch(client: Client, { type, data }: ClientMessage): Promise<MessageReply> {
    const { context } = client
    if (closing.signal.aborted) throw closingError()
    const drained = entering.has(type) ? options.draining?.() : undefined
    if (drained !== undefined) throw drained
    const action = messageActions[type]
    if (decide(context.principal, action) !== 'allow') throw notAllowed(action)
    return effectOf(client, { type, data })
  }

  /** Another token of the same user: what the socket reads goes on when the one before ends. */
  async function renew({ socket, session, access: own }: Client, data: Data): Promise<MessageReply> {
    const token = ownValue(data, 'token')
    if (typeof token !== 'string') throw bad('token', 'a token')
    own.renew(await identify(socket, token))
    session.requests.renew(token)
    return { said: {} }
  }

  function effectOf(client: Client, { type, data }: ClientMessage): Promise<MessageReply> {
    const { context, session } = client
    switch (type) {
      case 'run_agent':
        return session.track(runAgent(context, session, data))
      case 'tool_result':
        return answerCall(context, session, data)
      case 'message':
        return sendMessage(context, session, data)
      case 'abort_run':
        return abortRun(context, session, data)
      case 'watch_run':
        return session.track(watchRun(context, session, data))
      case 'request':
        return session.requests.pass(data)
      case 'cancel_request':
        return session.requests.cancel(data)
      case 'renew':
        return renew(client, data)
    }
  }

  const count = (of: (session: Session) => number) =>
    [...sessions.values()].reduce((sum, { session }) => sum + of(session), 0)
  const runs = () => count(({ active, starting, requests }) => active - starting.size + requests.size)

  return {
    handle(request, response) {
      const pass = () => void inner.emit('request', request, response)
      if (request.method === 'POST') input.handle(request, response, pass)
      else pass()
    },
    upgrade: (request, socket, head) => void inner.emit('upgrade', request, socket, head),
    announceAgents() {
      for (const { socket, context } of sessions.values()) socket.emit('agents', agentsMessage(context.runtime.agents))
    },
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
